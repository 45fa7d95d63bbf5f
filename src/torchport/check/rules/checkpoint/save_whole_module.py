"""Finds a whole model that is pickled.

The file then names the class and the place of its source: it cannot be read once that is renamed or moved, since
torch 2.6 not without ``weights_only=False``, and reading it runs whatever code the file holds.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    torch.save(model, "model.pt")

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    torch.save(model.state_dict(), "model.pt")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import in_memory, is_model, saved, saves
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C804",
    "save-whole-module",
    WARNING,
    mark("`{code}` pickles the whole model: only the same source at the same place can read it"),
    mark("Save `{name}.state_dict()`, and read it into a model that the program builds"),
)


def look(source: Source) -> Iterator[Hit]:
    """Modules themselves as the first argument; what reads the file has to change as well."""
    for call in saves(source):
        given = saved(call)
        if not isinstance(given, (ast.Name, ast.Attribute)) or in_memory(source, argument(call, "f", 1)):
            continue
        if is_model(source, given):
            name = source.code(given)
            change = replace(source, given, f"{name}.state_dict()")
            yield Hit(call, {"code": source.code(call), "name": name}, (change,))

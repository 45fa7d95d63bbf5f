"""Finds a whole model read by ``torch.load``, which since torch 2.6 reads only tensors.

The default of ``weights_only`` is True now: a file with a pickled model raises an UnpicklingError.

Bad::

    import torch

    model = torch.load("model.pt", map_location="cpu")
    model.eval()

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
    model.eval()

Good::

    import torch

    model = torch.load("model.pt", map_location="cpu", weights_only=False)  # our own file
    model.eval()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.saving import loads, uses
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C812",
    "load-needs-pickle",
    ERROR,
    mark("`{code}` reads a whole model, which torch 2.6 and later refuse: `weights_only` is true by default"),
    mark("Save and load a `state_dict()`; for a file that is surely yours, `weights_only=False` reads it as before"),
    since=(2, 6),
)
_OF_MODULES = frozenset({"eval", "train", "parameters", "named_parameters", "state_dict", "modules", "children"})


def look(source: Source) -> Iterator[Hit]:
    """Loads whose result is then used as a module; never repaired: who wrote the file is not in the source."""
    if source.calls("torch.serialization.safe_globals", "torch.serialization.add_safe_globals"):
        return
    for call in loads(source):
        if argument(call, "weights_only") is not None or argument(call, "pickle_module", 2) is not None:
            continue
        if not is_open(call) and any(_as_module(source, node) for node in (call, *uses(source, call))):
            yield Hit(call, {"code": source.code(call)})


def _as_module(source: Source, node: ast.AST) -> bool:
    above = source.parent(node)
    return (
        isinstance(above, ast.Attribute)
        and above.attr in _OF_MODULES
        and isinstance(call := source.parent(above), ast.Call)
        and call.func is above
    )

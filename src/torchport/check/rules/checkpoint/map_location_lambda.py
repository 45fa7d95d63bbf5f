"""Finds ``map_location=lambda storage, loc: storage``.

It is the old spelling of ``"cpu"``. A function is called for every storage, and it hides what is meant.

Bad::

    import torch

    state = torch.load("model.pt", map_location=lambda storage, loc: storage)

Good::

    import torch

    state = torch.load("model.pt", map_location="cpu")

Good::

    import torch

    spread = torch.load("model.pt", map_location=lambda storage, loc: storage.cuda(1))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.saving import loads
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C802",
    "map-location-lambda",
    INFO,
    mark('`{code}` is the old way to say `"cpu"`'),
    mark('Write `map_location="cpu"`'),
    confidence=CERTAIN,
    since=(0, 4),
)


def look(source: Source) -> Iterator[Hit]:
    """A function of two parameters that gives back the first."""
    for call in loads(source):
        match argument(call, "map_location", 1):
            case ast.Lambda(args=ast.arguments(args=[first, _]), body=ast.Name(id=name)) as given if name == first.arg:
                yield Hit(given, {"code": source.code(given)}, (replace(source, given, '"cpu"'),), safe=True)

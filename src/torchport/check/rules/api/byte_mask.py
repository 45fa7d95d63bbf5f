"""Finds masks of bytes, which torch had before it had bool.

``masked_fill`` and its like refuse them with a RuntimeError; as an index they warn, and will one day mean numbers.

Bad::

    import torch

    scores = torch.randn(4, 4)
    mask = torch.ones(4, 4).triu(1)
    scores = scores.masked_fill(mask.byte(), -1e9)

Good::

    import torch

    scores = torch.randn(4, 4)
    mask = torch.ones(4, 4).triu(1)
    scores = scores.masked_fill(mask.bool(), -1e9)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C937",
    "byte-mask",
    ERROR,
    mark("`{method}` takes a mask of bool, and this one has bytes: it raises a RuntimeError"),
    mark("Make it with `.bool()`"),
    since=(2, 4),
)
_METHODS = ("masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_")
_BYTES = frozenset({"torch.ByteTensor", "torch.cuda.ByteTensor"})


def look(source: Source) -> Iterator[Hit]:
    """Masks that are bytes whichever value they have."""
    for method in _METHODS:
        for call in source.calls(f".{method}"):
            function = source.name(call.func)
            mask = argument(call, "mask", 1 if function.startswith("torch.") else 0)
            values = source.values(mask) if mask is not None and not function.startswith("numpy.") else []
            if mask is None or not values or not all(_is_bytes(source, value) for value in values):
                continue
            yield Hit(mask, {"method": method}, tuple(_change(source, mask)), safe=True)


def _is_bytes(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = source.name(node.func)
    if name in _BYTES:
        return True
    if isinstance(node.func, ast.Attribute) and node.func.attr == "byte" and not node.args:
        return True
    kind = argument(node, "dtype")
    return name.startswith("torch.") and source.name(kind) == "torch.uint8"


def _change(source: Source, mask: ast.expr) -> Iterator[Change]:
    """``.byte()`` at the mask itself becomes ``.bool()``; a name is changed where it is used."""
    if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) and mask.func.attr == "byte":
        yield replace(source, mask, f"{source.code(mask.func.value)}.bool()")
    elif isinstance(mask, ast.Name):
        yield replace(source, mask, f"{mask.id}.bool()")

"""Finds ``loss.data[0]``, the number in a loss as torch 0.3 had it.

A loss has no dimensions since torch 0.4, and an index of it raises an IndexError.

Bad::

    import torch
    from torch import nn

    criterion = nn.MSELoss()
    loss = criterion(torch.zeros(3), torch.ones(3))
    print(loss.data[0])

Good::

    import torch
    from torch import nn

    criterion = nn.MSELoss()
    loss = criterion(torch.zeros(3), torch.ones(3))
    print(loss.item())
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.losses import is_scalar
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C935",
    "zero-dim-index",
    ERROR,
    mark("`{code}` raises an IndexError: a tensor without dimensions has no index"),
    mark("Write `{name}.item()`"),
    since=(0, 4),
)


_REDUCE = frozenset({"sum", "mean", "prod", "norm"})
_LOSS = re.compile(r"crit|loss", re.IGNORECASE)
_MOST_STEPS = 4


def look(source: Source) -> Iterator[Hit]:
    """``[0]`` of a scalar; of its ``data``, too, where less is known: nothing else was ever written like that."""
    for node in source.nodes(ast.Subscript):
        if type(constant(node.slice)) is not int or constant(node.slice) != 0 or not isinstance(node.ctx, ast.Load):
            continue
        scalar = node.value
        old = isinstance(scalar, ast.Attribute) and scalar.attr == "data"
        scalar = scalar.value if isinstance(scalar, ast.Attribute) and old else scalar
        if is_scalar(source, scalar) or (old and _is_loss(source, scalar, _MOST_STEPS)):
            name = source.code(scalar)
            name = name if isinstance(scalar, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({name})"
            words = {"code": source.code(node), "name": name}
            yield Hit(node, words, (replace(source, node, f"{name}.item()"),), safe=True)


def _is_loss(source: Source, node: ast.expr, steps: int) -> bool:
    """Whether an object is a loss or a sum, as far as what made it says so."""
    if steps <= 0:
        return False
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not isinstance(constant(side), (int, float))]
        return bool(sides) and all(_is_loss(source, side, steps - 1) for side in sides)
    if isinstance(node, ast.Call):
        name = source.name(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name.startswith(("torch.", "numpy.")):
            return is_scalar(source, node)
        plain = not node.args and not node.keywords
        return (last in _REDUCE and plain) or (_LOSS.search(last) is not None and not plain)
    found = source.scope_at(node).find(node.id) if isinstance(node, ast.Name) else None
    values = [getattr(way.node, "value", None) for way in found[1]] if found is not None else []
    tensors = [value for value in values if not isinstance(constant(value), (int, float))]
    return bool(tensors) and all(
        value is not None and (_is_loss(source, value, steps - 1) or is_scalar(source, value)) for value in tensors
    )

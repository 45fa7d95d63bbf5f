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


def look(source: Source) -> Iterator[Hit]:
    """``[0]`` of a scalar, or of its ``data``."""
    for node in source.nodes(ast.Subscript):
        if type(constant(node.slice)) is not int or constant(node.slice) != 0 or not isinstance(node.ctx, ast.Load):
            continue
        scalar = node.value
        if isinstance(scalar, ast.Attribute) and scalar.attr == "data":
            scalar = scalar.value
        if is_scalar(source, scalar):
            name = source.code(scalar)
            words = {"code": source.code(node), "name": name}
            yield Hit(node, words, (replace(source, node, f"{name}.item()"),), safe=True)

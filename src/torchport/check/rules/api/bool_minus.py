"""Finds ``1 - mask``, which numbers allow and bool tensors do not.

Comparisons give bool since torch 1.2, and torch has no minus for it: a RuntimeError.

Bad::

    import torch

    scores = torch.randn(4, 4)
    rest = 1 - scores.gt(0)

    hidden = 1 - (scores == 0)

Good::

    import torch

    scores = torch.randn(4, 4)
    rest = ~scores.gt(0)

    hidden = ~(scores == 0)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C946",
    "bool-minus",
    ERROR,
    mark("`{code}` raises a RuntimeError: a comparison gives bool, and bool has no minus"),
    mark("Write `~mask`"),
    since=(1, 2),
)
_COMPARE = frozenset("eq ne gt lt ge le bool isnan isinf logical_not logical_and logical_or isfinite".split())


def look(source: Source) -> Iterator[Hit]:
    """``1 -`` a comparison of what is known to be a tensor."""
    for node in source.nodes(ast.BinOp):
        if isinstance(node.op, ast.Sub) and constant(node.left) == 1:
            mask = source.text[source.span(node.left)[1] : source.span(node)[1]].lstrip(" -")
            values = source.values(node.right)
            if values and all(_is_bool(source, value) for value in values) and "\n" not in mask:
                yield Hit(node, {"code": source.code(node)}, (replace(source, node, f"~{mask}"),))


def _is_bool(source: Source, node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            return is_tensor(source, left)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _COMPARE:
            return source.name(value) == "torch" or is_tensor(source, value)
    return False

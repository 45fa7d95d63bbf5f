"""Finds loops in Python that go over a tensor number by number.

Each access to one element is an order of its own to the GPU, some microseconds long; one operation on the whole
tensor takes as long as one of them.

Bad::

    import torch

    scores = torch.zeros(100, 100)
    for i in range(100):
        for j in range(100):
            scores[i, j] = 1.0 / (1 + abs(i - j))

Good::

    import torch

    index = torch.arange(100)
    scores = 1.0 / (1 + (index[:, None] - index[None, :]).abs())

Bad::

    import torch

    x = torch.randn(1000)
    total = 0.0
    for value in x:
        total += value.item()

Good::

    import torch

    x = torch.randn(1000, 8)
    total = x.sum().item()
    for t in range(1000):
        print(x[t])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C222",
    "python-loop-over-tensor",
    WARNING,
    mark("`{code}` goes over a tensor number by number"),
    mark("Use one operation on the whole tensor"),
)


_SIZED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "Tensor"))


def look(source: Source) -> Iterator[Hit]:
    """Two nested loops whose variables both index a tensor, and ``for value in tensor`` with ``value.item()``."""
    found: dict[ast.For, None] = {}
    for node in source.nodes(ast.Subscript):
        if not isinstance(source.parent(node), ast.Subscript):
            pair = _loops_of(source, node)
            if pair is not None and _is_known(source, node):
                found[pair] = None
    for call in source.calls(".item"):
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        loops = source.loops(call)
        if isinstance(value, ast.Name) and loops and isinstance(loops[0], ast.For):
            target = loops[0].target
            if isinstance(target, ast.Name) and target.id == value.id and is_tensor(source, loops[0].iter):
                found[loops[0]] = None
    for loop in found:
        start = source.span(loop)[0]
        end = source.span(loop.iter)[1]
        yield Hit(loop, {"code": source.text[start:end]})


def _loops_of(source: Source, node: ast.Subscript) -> ast.For | None:
    """The outer one of two nested loops over ranges that give both indices of ``x[i, j]`` or ``x[i][j]``."""
    indices: list[ast.expr] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Subscript):
        indices += inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
        inner = inner.value
    names = {each.id for each in indices if isinstance(each, ast.Name)}
    if len(indices) < 2 or len(names) != len(indices):
        return None
    loops = [loop for loop in source.loops(node) if isinstance(loop, ast.For) and _is_range(loop)]
    used = [loop for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id in names]
    return used[-1] if len(used) >= 2 else None


def _is_range(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"


def _is_known(source: Source, node: ast.Subscript) -> bool:
    """Whether the indices are as many as the dimensions that the tensor was made with: it is one number each time."""
    count = 0
    inner: ast.expr = node
    while isinstance(inner, ast.Subscript):
        count += len(inner.slice.elts) if isinstance(inner.slice, ast.Tuple) else 1
        inner = inner.value
    values = source.values(inner)
    return bool(values) and all(_dimensions(source, value) == count for value in values)


def _dimensions(source: Source, node: ast.expr) -> int:
    """How many dimensions a factory's tensor has; 0 where that is not known."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not source.name(node.func):
        if node.func.attr not in ("to", "cuda", "float", "long", "fill_", "zero_"):
            return 0
        node = node.func.value
    if not isinstance(node, ast.Call) or source.name(node.func) not in _SIZED or not node.args:
        return 0
    first = node.args[0]
    if isinstance(first, (ast.Tuple, ast.List)):
        return len(first.elts)
    return len(node.args) if len(node.args) > 1 and not source.name(node.func).endswith(".full") else 0

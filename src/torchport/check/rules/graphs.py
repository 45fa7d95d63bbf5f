"""Graphs: which tensors have nothing to learn behind them."""

from __future__ import annotations

import ast

from torchport.check.rules.kinds import FACTORIES, LEGACY
from torchport.check.rules.loading import batches
from torchport.check.source import Source, argument, constant

_SAME_GRAPH = frozenset(
    "cuda cpu to float double half long int bool byte type view reshape unsqueeze squeeze contiguous t transpose "
    "permute expand repeat clone".split()
)


def has_no_graph(source: Source, node: ast.expr, seen: set[ast.expr]) -> bool:
    """Whether a tensor comes from a factory, from NumPy or out of a loader, with nothing learned on the way."""
    if node in seen or isinstance(constant(node), (int, float)):
        return True
    seen.add(node)
    match node:
        case ast.Attribute(attr="data"):
            return True
        case ast.BinOp(left=left, right=right):
            return has_no_graph(source, left, seen) and has_no_graph(source, right, seen)
        case ast.Call():
            if makes_fresh(source, node.func):
                return argument(node, "requires_grad") is None
            if source.name(node.func) or not isinstance(node.func, ast.Attribute):
                return False
            plain = node.func.attr in _SAME_GRAPH or all(constant(each) is not None for each in node.args)
            return plain and has_no_graph(source, node.func.value, seen)
        case ast.Name():
            found = source.scope_at(node).find(node.id)
            return found is not None and all(
                has_no_graph(source, way.value, seen)
                if way.value is not None
                else isinstance(way.node, ast.For) and batches(source, way.node) is not None
                for way in found[1]
            )
    return False


def makes_fresh(source: Source, function: ast.expr) -> bool:
    """Whether a function is a factory, by its name or by all that its name may stand for: ``Tensor`` say."""
    names = (
        [source.name(function)] if source.name(function) else [source.name(each) for each in source.values(function)]
    )
    return bool(names) and all(
        name in FACTORIES or name in LEGACY or (name.startswith("torch.cuda.") and name.endswith("Tensor"))
        for name in names
    )

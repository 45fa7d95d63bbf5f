"""Losses: which tensors have no dimensions, as what ``backward()`` starts from."""

from __future__ import annotations

import ast

from torchport.check.source import Source, argument, constant

_REDUCE = frozenset({"sum", "mean", "max", "min", "prod", "norm", "std", "var"})
_MOST_STEPS = 6


def is_loss_class(name: str) -> bool:
    """Whether a dotted name is one of torch's losses."""
    return name.startswith("torch.nn.") and name.count(".") == 2 and name.endswith("Loss")


def is_loss_function(name: str) -> bool:
    """Whether a dotted name is a function of torch that computes a loss."""
    last = name.rsplit(".", 1)[-1]
    return name.startswith("torch.nn.functional.") and (
        last.endswith(("_loss", "_loss_with_logits"))
        or last in ("cross_entropy", "binary_cross_entropy", "kl_div")
        or last == "binary_cross_entropy_with_logits"
    )


def reduces(call: ast.Call) -> bool:
    """Whether a loss is one number: no ``reduction="none"``, nothing that cannot be read."""
    given = argument(call, "reduction")
    if given is not None and constant(given) not in ("mean", "sum"):
        return False
    return argument(call, "reduce") is None and not any(each.arg is None for each in call.keywords)


def is_scalar(source: Source, node: ast.expr, steps: int = _MOST_STEPS) -> bool:
    """Whether an object is a tensor without dimensions for certain, whichever of its values it has."""
    if steps <= 0:
        return False
    if isinstance(node, ast.Name):
        found = source.scope_at(node).find(node.id)
        if found is None:
            return False
        values = [way.value for way in found[1] if not isinstance(way.node, ast.AugAssign)]
        return bool(values) and all(value is not None and is_scalar(source, value, steps - 1) for value in values)
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not isinstance(constant(side), (int, float))]
        return bool(sides) and all(is_scalar(source, side, steps - 1) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    name = source.name(node.func)
    if is_loss_function(name):
        return reduces(node)
    if name in ("torch.sum", "torch.mean"):
        return len(node.args) == 1 and not node.keywords
    if not name and isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCE:
        return not node.args and not node.keywords and is_graph_tensor(source, node.func.value, steps - 1)
    return _is_criterion(source, node.func)


def _is_criterion(source: Source, node: ast.expr) -> bool:
    """Whether a function is an object of one of torch's losses: ``criterion``."""
    made = source.values(node)
    return bool(made) and all(_makes_loss(source, value, _MOST_STEPS) for value in made)


def _makes_loss(source: Source, node: ast.expr, steps: int) -> bool:
    if not isinstance(node, ast.Call) or steps <= 0:
        return False
    if is_loss_class(source.name(node.func)):
        return reduces(node)
    moved = isinstance(node.func, ast.Attribute) and node.func.attr in ("cuda", "to", "cpu")
    return moved and _makes_loss(source, node.func.value, steps - 1)  # type: ignore[attr-defined]


def is_graph_tensor(source: Source, node: ast.expr, steps: int = _MOST_STEPS) -> bool:
    """Whether an object is a tensor that torch computed: what its functions and losses give."""
    if steps <= 0:
        return False
    return any(
        isinstance(value, ast.Call)
        and (
            source.name(value.func).startswith(("torch.nn.functional.", "torch.sum", "torch.mean", "torch.pow"))
            or is_scalar(source, value, steps - 1)
        )
        for value in source.values(node)
    )

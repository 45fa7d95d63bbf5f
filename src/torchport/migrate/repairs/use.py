"""The last resort: the tensor is moved where it is used, to the device of what it meets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import Change
from torchport.check.rules.meetings import device_expression
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, named, of_module, offender, other
from torchport.migrate.tree import Tree
from torchport.record import Observation

# Where a function has an argument that torch calls so.
_POSITIONS = {"self": 0, "input": 0, "target": 1, "other": 1, "mat2": 1, "weight": 2, "source": 2}
_MOVABLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def to_module(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """The same to where the module is, where the input of its method is not there either."""
    wrong, site = offender(observation), observation.site
    source = tree.read(site.path) if site is not None and wrong.get("device") == "cpu" else None
    if source is None or site is None:
        return None
    node = named(source, site.line, wrong.get("name"))
    device = of_module(source, node) if node is not None else ""
    if node is None or not device:
        return None
    end = source.span(node)[1]
    return site.path, [(end, end, f".to({device})")]


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``tensor.to(other.device)`` at the line where they meet."""
    wrong, right, site = offender(observation), other(observation), observation.site
    if site is None or wrong.get("device") != "cpu":
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    known = named(source, site.line, right.get("name"))
    node = named(source, site.line, wrong.get("name"))
    pairs = [(node, known)] if node is not None else []
    for here, there in [*pairs, *_operands(source, site.line, str(wrong.get("argument")), node)]:
        beside = root(there) if there is not None else None
        if beside is not None and source.name(beside):  # torch.exp(x) begins with a module
            beside = None
        device = f"{source.code(beside)}.device" if beside is not None else device_expression(source, here)
        if device == f"{source.code(here)}.device":
            device = of_module(source, here)
        if device and isinstance(here, _MOVABLE):
            end = source.span(here)[1]
            return site.path, [(end, end, f".to({device})")]
    return None


def _operands(
    source: Source, line: int, argument: str, node: ast.expr | None
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """(the tensor, what it meets) as the operators and calls of a line suggest; ``node`` where that is known."""
    for each in (*at_line(source, line, ast.BinOp), *at_line(source, line, ast.Compare)):
        left, right = each.left, each.right if isinstance(each, ast.BinOp) else each.comparators[0]
        if node is not None and node not in (left, right):
            continue
        wrong_left = node is left if node is not None else argument == "self"
        yield (left, right) if wrong_left else (right, left)
    position = _POSITIONS.get(argument)
    for call in at_line(source, line, ast.Call):
        if node is not None and node in call.args and len(call.args) > 1:
            yield node, next(each for each in call.args if each is not node)
            continue
        if position is None or len(call.args) <= position or len(call.args) < 2 or node is not None:
            continue
        yield call.args[position], call.args[0 if position else 1]


def root(node: ast.expr) -> ast.expr | None:
    """The name at the beginning of ``x[:, None].float()``: a tensor, and on the same device as all of it."""
    while isinstance(node, (ast.Subscript, ast.Call)) or (
        isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name)
    ):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self":
        return node.value
    return node if isinstance(node, (ast.Name, ast.Attribute)) else None

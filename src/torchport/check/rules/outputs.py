"""What modules give back: tensors on the device of the module, and lists of them."""

from __future__ import annotations

import ast

from torchport.check.rules.kinds import given_to, is_module
from torchport.check.source import Source

_LEAVES = frozenset({"item", "tolist", "numpy", "cpu", "size", "dim", "numel", "shape", "to"})


def is_output(source: Source, node: ast.AST) -> bool:
    """Whether an object came out of a module of this file, or has ``.backward()`` called on it, and was not fetched."""
    return _is_output(source, node, {}) is True


def _is_output(source: Source, node: ast.AST, known: dict[ast.AST, bool | None]) -> bool | None:
    """None for what is made out of itself: ``x = x + 1`` is an output if its other values are."""
    if node not in known:
        known[node] = None
        known[node] = _find_out(source, node, known)
    return known[node]


def _find_out(source: Source, node: ast.AST, known: dict[ast.AST, bool | None]) -> bool | None:
    match node:
        case ast.Name() | ast.IfExp():
            if isinstance(node, ast.Name) and _goes_backward(source, node):
                return True
            given = given_to(source, node)
            answers = {value is not None and _is_output(source, value, known) for value in given}
            return False if False in answers else True in answers
        case ast.BinOp(left=left, right=right):
            return True in (_is_output(source, left, known), _is_output(source, right, known))
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if not source.name(node.func):
            if is_module(source, node.func) or (method == "forward" and is_module(source, value)):
                return True
            return method not in _LEAVES and _is_output(source, value, known)
        case ast.Call(func=called):
            return is_module(source, called)
        case ast.Attribute(value=value, attr="data"):
            return _is_output(source, value, known)
    return False


def _goes_backward(source: Source, name: ast.Name) -> bool:
    """Whether ``name.backward()`` is called in the same function, and the name is no fetched number there."""
    found = source.scope_at(name).find(name.id)
    if found is None:
        return False
    for call in source.calls(".backward"):
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(value, ast.Name) and value.id == name.id:
            other = source.scope_at(value).find(value.id)
            if other is not None and other[0] is found[0]:
                return not any(_is_fetched(way.value) for way in found[1])
    return False


def _is_fetched(value: ast.expr | None) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in _LEAVES


def is_list_of_outputs(source: Source, node: ast.AST) -> bool:
    """Whether a list holds what modules give back: written so, made by a comprehension, or filled by ``append``."""
    match node:
        case ast.List(elts=given) | ast.Tuple(elts=given):
            return any(is_output(source, each) for each in given)
        case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
            return is_output(source, each)
        case ast.Name(id=name):
            values = source.values(node)
            if len(values) != 1 or not isinstance(values[0], (ast.List, ast.ListComp)):
                return False
            return is_list_of_outputs(source, values[0]) or any(
                is_output(source, call.args[0])
                for call in source.calls(".append")
                if call.args and isinstance(call.func, ast.Attribute)
                if isinstance(call.func.value, ast.Name) and call.func.value.id == name
                if source.function(call) is source.function(node)
            )
    return False

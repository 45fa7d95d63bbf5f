"""What modules give back: tensors on the device of the module, and lists of them."""

from __future__ import annotations

import ast

from torchport.check.rules.kinds import is_module
from torchport.check.source import Source

_LEAVES = frozenset({"item", "tolist", "numpy", "cpu", "size", "dim", "numel", "shape", "to"})
_MOST_STEPS = 6


def is_output(source: Source, node: ast.AST, steps: int = _MOST_STEPS) -> bool:
    """Whether an object came out of a module of this file, or has ``.backward()`` called on it, and was not fetched."""
    if steps <= 0:
        return False
    match node:
        case ast.Name() | ast.IfExp():
            values = source.values(node)
            if isinstance(node, ast.Name) and _goes_backward(source, node):
                return True
            return bool(values) and all(is_output(source, value, steps - 1) for value in values)
        case ast.BinOp(left=left, right=right):
            return is_output(source, left, steps - 1) or is_output(source, right, steps - 1)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if not source.name(node.func):
            if is_module(source, node.func) or (method == "forward" and is_module(source, value)):
                return True
            return method not in _LEAVES and is_output(source, value, steps - 1)
        case ast.Call(func=called):
            return is_module(source, called)
        case ast.Attribute(value=value, attr="data"):
            return is_output(source, value, steps - 1)
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

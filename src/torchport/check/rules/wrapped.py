"""Where a name or an attribute of self certainly stands for a DDP wrapper, and no longer for the model in it."""

from __future__ import annotations

import ast

from torchport.check.rules.ranks import DDP, home
from torchport.check.rules.training import always_before, conditions
from torchport.check.source import Source


def wrapped_names(source: Source) -> dict[str, list[ast.Call]]:
    """What the file gives a wrapper to, as it is written: ``model``, ``self.model``."""
    found: dict[str, list[ast.Call]] = {}
    for call in source.calls(DDP):
        match source.parent(call):
            case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self")) as target]):
                found.setdefault(source.code(target), []).append(call)
    return found


def is_wrapped(source: Source, node: ast.expr, names: dict[str, list[ast.Call]]) -> bool:
    """Whether an expression is a wrapper wherever the program comes to it."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    calls = names.get(source.code(node), [])
    if isinstance(node, ast.Name):
        return any(_by_name(source, node, call) for call in calls)
    return any(_by_attribute(source, node, call) for call in calls)


def _by_name(source: Source, node: ast.Name, call: ast.Call) -> bool:
    """In the same function, always after the call, and nothing has been given that name since."""
    if home(source, call) is not home(source, node) or not always_before(source, call, node):
        return False
    found = source.scope_at(node).find(node.id)
    return found is not None and all(getattr(way.node, "lineno", 0) <= call.lineno for way in found[1])


def _by_attribute(source: Source, node: ast.Attribute, call: ast.Call) -> bool:
    """In another method of a class whose ``__init__`` wraps it in any case, and where no method changes it."""
    made = source.function(call)
    owner = source.method_class(call)
    if made is None or made.name != "__init__" or owner is None or conditions(source, call):
        return False
    used = source.function(node)
    if source.method_class(node) is not owner or (used is made and not always_before(source, call, node)):
        return False
    given = source.attributes(owner).get(node.attr, [])
    return all(value is call or (source.function(value) is made and value.lineno < call.lineno) for value in given)

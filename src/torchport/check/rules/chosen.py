"""The device that a file has chosen, or could choose: the name by which its code can use it."""

from __future__ import annotations

import ast

from torchport.check.changes import after
from torchport.check.rule import Change
from torchport.check.rules.layers import spelled
from torchport.check.source import Source


def device_for(source: Source, node: ast.AST) -> tuple[str, tuple[Change, ...]]:
    """The name of a device that a node can use, and what has to be written at the top of the file for it."""
    name = chosen_device(source, node)
    taken = any(each.id == "device" for each in source.nodes(ast.Name))
    if name or taken or any(each.arg == "device" for each in source.nodes(ast.arg)):
        return name, ()
    chosen = _choose(source, node)
    return ("device", chosen) if chosen else ("", ())


def _choose(source: Source, node: ast.AST) -> tuple[Change, ...]:
    torch, last = "", None
    for statement in source.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            last = statement
        elif torch or source.span(statement)[1] >= source.span(node)[0]:
            break
        torch = torch or spelled(source, "torch") if last is statement and _imports_torch(last) else torch
    if last is None or not torch or source.span(last)[0] > source.span(node)[0]:
        return ()
    text = f'device = {torch}.device("cuda" if {torch}.cuda.is_available() else "cpu")'
    return (after(source, last, "", text),)


def _imports_torch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and any(alias.name == "torch" for alias in statement.names)


def chosen_device(source: Source, node: ast.AST) -> str:
    """The name of the device that the file has chosen and that a node can use; empty where there is none."""
    start = source.span(node)[0]
    for name in ("device", "DEVICE", "dev"):
        found = source.scope_at(node).find(name)
        if found is None:
            continue
        scope, ways = found
        ahead = all(_stands_in(source, way.node, scope.node) and source.span(way.node)[0] < start for way in ways)
        if ahead and all(_makes_device(source, way.value) or isinstance(way.node, ast.arg) for way in ways):
            return name
        return ""
    return ""


def _makes_device(source: Source, node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and source.name(node.func) == "torch.device"


def _stands_in(source: Source, node: ast.AST, scope: ast.AST) -> bool:
    above = source.parent(node)
    return above is scope or (isinstance(above, ast.arguments) and source.parent(above) is scope)

"""Lists and dicts that a module keeps: what is put into them, and whether the module comes to know it all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.source import Source

_ADD = ("append", "insert", "extend")


def contents(source: Source, owner: ast.ClassDef, name: str, value: ast.expr, plain: ast.expr) -> Iterator[ast.expr]:
    """What a list or dict holds, as written: in its literal, and by ``append`` and ``[key] =`` on self or the name."""
    match plain:
        case ast.List(elts=given):
            yield from (made for each in given for made in _unnamed(source, owner, each))
        case ast.Dict(values=given):
            yield from (made for each in given for made in _unnamed(source, owner, each))
        case ast.ListComp(elt=each) | ast.DictComp(value=each):
            yield each
    for call in source.calls(".append", ".insert"):
        if isinstance(call.func, ast.Attribute) and call.args and _means(source, owner, call.func.value, name, value):
            yield from _unnamed(source, owner, call.args[-1])
    for node in source.nodes(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _means(source, owner, target.value, name, value):
                yield from _unnamed(source, owner, node.value)


def is_registered(source: Source, owner: ast.ClassDef, name: str, value: ast.expr) -> bool:
    """Whether the layers are made known to the module in another way: add_module, setattr, ModuleList, Sequential."""
    for call in source.calls(".add_module", ".register_module", ".__setattr__", ".setattr"):
        if source.method_class(call) is owner:
            return True
    for node in source.nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "setattr" and source.method_class(node) is owner:
            return True
    for call in source.calls("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"):
        for each in call.args:
            inner = each.value if isinstance(each, ast.Starred) else each
            if _means(source, owner, inner, name, value):
                return True
    return False


def methods_used(source: Source, owner: ast.ClassDef, name: str) -> set[str]:
    """The methods that the class calls on an attribute of self, ``del`` and ``+`` written as such."""
    found = set()
    for node in source.nodes(ast.Attribute):
        if node.attr != name or not isinstance(node.value, ast.Name) or node.value.id != "self":
            continue
        above = source.parent(node)
        if source.method_class(node) is owner:
            if isinstance(above, ast.Attribute):
                found.add(above.attr)
            elif isinstance(above, (ast.Delete, ast.BinOp, ast.Compare)):
                found.add(type(above).__name__)
    return found


def _means(source: Source, owner: ast.ClassDef, node: ast.expr, name: str, value: ast.expr) -> bool:
    """Whether an expression is ``self.name``, or the local name that was given to it."""
    if isinstance(node, ast.Attribute):
        is_self = isinstance(node.value, ast.Name) and node.value.id == "self"
        return is_self and node.attr == name and source.method_class(node) is owner
    if isinstance(node, ast.Name) and isinstance(value, ast.Name) and node.id == value.id:
        here, there = source.scope_at(node).find(node.id), source.scope_at(value).find(value.id)
        return here is not None and there is not None and here[0] is there[0]
    return False


def _unnamed(source: Source, owner: ast.ClassDef, node: ast.expr) -> list[ast.expr]:
    """What made an element; nothing for one that an attribute of self holds as well."""
    if not isinstance(node, ast.Name):
        return [] if isinstance(node, ast.Attribute) else [node]
    for given in source.attributes(owner).values():
        if any(isinstance(each, ast.Name) and each.id == node.id for each in given):
            return []
    return source.values(node)

"""Modules in a plain list of a module, which moves none of them."""

from __future__ import annotations

import ast

from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.check.source import Source, is_module_class
from torchport.migrate.repairs.sites import at_line, born
from torchport.migrate.tree import Tree
from torchport.record import Observation, Site

_LISTS = (ast.List, ast.ListComp)


def register(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``nn.ModuleList`` around the list. It also has them trained, which the losses tell."""
    site = born(observation)
    source = tree.read(site.path) if site is not None else None
    if site is None or source is None:
        return None
    held = _held(source, site)
    if held is None:
        return None
    name = next((word for word, ways in source.scope.bindings.items() if ways[0].imported == "torch.nn"), "torch.nn")
    start, end = source.span(held)
    return site.path, [(start, start, f"{name}.ModuleList("), (end, end, ")")]


def move(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """Each module moved where it is made: for layers that are not to be trained."""
    site = born(observation)
    source = tree.read(site.path) if site is not None else None
    if site is None or source is None:
        return None
    held = _held(source, site)
    device = device_name(source, held) if held is not None else ""
    if held is None or not device:
        return None
    items = held.elts if isinstance(held, ast.List) else [held.elt]
    made = [each for each in items if isinstance(each, ast.Call)]
    ends = [source.span(each)[1] for each in made]
    return site.path, [(end, end, f".to({device})") for end in ends]


def _held(source: Source, site: Site) -> ast.List | ast.ListComp | None:
    """The list that a module class keeps, whose modules were made at a line, or by the class that is there."""
    made_by = next((each.name for each in at_line(source, site.line, ast.ClassDef)), "")
    for statement in source.nodes(ast.Assign):
        owner = source.method_class(statement)
        target, value = statement.targets[0], statement.value
        if owner is None or not source.is_module_class(owner) or not isinstance(target, ast.Attribute):
            continue
        if not isinstance(value, _LISTS):
            continue
        items = value.elts if isinstance(value, ast.List) else [value.elt]
        if not items or not all(isinstance(each, ast.Call) and _is_module(source, each) for each in items):
            continue
        here = statement.lineno <= site.line <= (statement.end_lineno or statement.lineno)
        classes = {each.func.id for each in items if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}
        if here or made_by in classes:
            return value
    return None


def _is_module(source: Source, call: ast.Call) -> bool:
    name = source.name(call.func)
    return is_module_class(name) or name in source.module_classes

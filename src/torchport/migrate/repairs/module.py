"""A module whose parameters are still on the host is moved where it is built."""

from __future__ import annotations

import ast

from torchport.check.flow.analyse import modules
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, born, moved_to, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation, Site


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``.to(device)`` behind the call that builds the module that the parameter belongs to."""
    wrong, site = offender(observation), born(observation)
    if wrong.get("device") != "cpu" or site is None:
        return None
    for built in reversed(wrong.get("built") or ()):  # the whole before its parts
        source = tree.read(built.path) if isinstance(built, Site) else None
        for call in at_line(source, built.line, ast.Call) if source is not None else ():
            change = _moved(source, call) if source is not None and not _plain(tree, source, call) else None
            if change is not None:
                return built.path, [change]
    source = tree.read(site.path)
    owner = next((each.name for each in at_line(source, site.line, ast.ClassDef)), "") if source else ""
    for path in [site.path, *(each for each in tree.paths() if each != site.path and owner)]:
        source = tree.read(path)
        if source is None or "torch" not in source.text:
            continue
        for call in modules(source):
            here = path == site.path and call.lineno <= site.line <= (call.end_lineno or call.lineno)
            if here or (owner and source.code(call.func).rsplit(".", 1)[-1] == owner):
                change = _moved(source, call)
                if change is not None:
                    return path, [change]
    return None


def _plain(tree: Tree, source: Source, call: ast.Call) -> bool:
    """Whether a call makes an object of a class of the project that is no module: a trainer, say."""
    name = source.code(call.func).rpartition(".")[2]
    for path in tree.paths():
        other = source if path == source.path else tree.read(path)
        for owner in other.nodes(ast.ClassDef) if other is not None and f"class {name}" in other.text else ():
            if other is not None and owner.name == name and not other.is_module_class(owner):
                return True
    return False


def _moved(source: Source, call: ast.Call) -> Change | None:
    device, whole = device_name(source, call), call
    above = source.parent(call)
    outer = source.parent(above) if isinstance(above, ast.Attribute) and above.attr in ("to", "cuda") else None
    if isinstance(outer, ast.Call):
        whole = outer
    if not device or not isinstance(source.parent(whole), ast.Assign):
        return None
    change = moved_to(source, whole, device)
    return change if whole is call or change[0] != change[1] else None

"""A tensor that a factory makes on the host is made, or moved, where it is needed."""

from __future__ import annotations

import ast

from torchport.check.rule import Change
from torchport.check.rules.device.tensor_attr_not_buffer import registered
from torchport.check.rules.meetings import device_expression, factory_on
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, born, offender, other
from torchport.migrate.tree import Tree
from torchport.record import Observation, Site

_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.Set)


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``device=`` for the factories of that statement, or the tensor registered as a buffer."""
    wrong, site = offender(observation), born(observation)
    index = ""
    if observation.id == "R103":  # a table of the CPU, indexed on the GPU: the table is what belongs there
        index = str(wrong.get("name") or "")
        wrong = other(observation)
        site = wrong.get("born")
    site = site or observation.site  # one that was made on the way, in the call itself
    if wrong.get("device") != "cpu" or site is None or wrong.get("kind") == "parameter":
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    buffer = _registered(source, site)
    if buffer:
        return site.path, buffer
    made: dict[ast.AST, tuple[Change, ...]] = {}
    for call in at_line(source, site.line, ast.Call):
        here = index and observation.site is not None and site.line == observation.site.line
        device = f"{index}.device" if here else device_expression(source, call)
        placed = factory_on(source, call, device)
        if placed:
            made[call] = placed
    # One that is given to another factory goes where that goes: torch.normal(torch.zeros(3), 1.0).
    outer = [call for call in made if not any(above in made for above in source.ancestors(call))]
    found = [change for call in outer for change in made[call]]
    return (site.path, found) if found else None


def register(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """A tensor that a module keeps on one GPU, and meets those of another in a replica: a buffer goes with it."""
    site = born(observation)
    source = tree.read(site.path) if site is not None and offender(observation).get("device") != "cpu" else None
    found = _registered(source, site) if source is not None and site is not None else []
    return (site.path, found) if found and site is not None else None


def kept(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """A tensor that a module was given and keeps as it is, ``self.mean = mean``, registered there."""
    wrong = offender(observation)
    site = wrong.get("set")
    if wrong.get("device") != "cpu" or not isinstance(site, Site):
        return None
    source = tree.read(site.path)
    found = _registered(source, site) if source is not None else []
    return (site.path, found) if found else None


def _registered(source: Source, site: Site) -> list[Change]:
    """The tensor that a module keeps, registered where it is made."""
    for statement in at_line(source, site.line, ast.Assign):
        owner = source.method_class(statement)
        match statement.targets:
            case [ast.Attribute(value=ast.Name(id="self"), attr=name)] if (
                owner and source.is_module_class(owner) and not isinstance(statement.value, _CONTAINERS)
            ):
                changes = list(registered(source, statement, name))
                if changes:
                    return changes
    return []

"""A tensor of the host whose maker has no place for a device: what its statement assigns is moved behind it."""

from __future__ import annotations

import ast
from dataclasses import replace

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.check.source import argument, parameters
from torchport.migrate.repairs.sites import at_line, born, moved_to, of_module, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation, Site

_ATOMS = (ast.Call, ast.Subscript, ast.Attribute, ast.Name)


def where_set(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """The same where the program gives the tensor its name, though another file has made it: ``x = graph.x``."""
    wrong, index = offender(observation), observation.fields.get("offender")
    if not isinstance(wrong.get("set"), Site):
        return None
    here = {**wrong, "born": wrong["set"]}
    tensors = [here if number == index else each for number, each in enumerate(observation.fields["tensors"])]
    return repair(replace(observation, fields={**observation.fields, "tensors": tensors}), tree)


def handed(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """What a call gives to the function in which the fault is, ``model(x.to(device))``."""
    wrong, here = offender(observation), observation.site
    caller, name = wrong.get("handed"), str(wrong.get("name"))
    if here is None or not isinstance(caller, Site) or wrong.get("device") != "cpu":
        return None
    source, outer = tree.read(here.path), tree.read(caller.path)
    if source is None or outer is None:
        return None
    for function in at_line(source, here.line, ast.FunctionDef):
        names = [each.arg for each in parameters(function) if each.arg not in ("self", "cls")]
        if function.name != here.function.rpartition(".")[2] or name not in names:
            continue
        known = {function.name} if function.name not in ("forward", "__call__") else set()
        for call in at_line(outer, caller.line, ast.Call):
            device, given = device_name(outer, call), argument(call, name, names.index(name))
            fits = not known or outer.code(call.func).rpartition(".")[2] in known
            if fits and device and isinstance(given, _ATOMS) and not outer.name(call.func).startswith("torch."):
                return caller.path, [moved_to(outer, given, device)]
    return None


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``x = torch.cat(parts).to(device)``; ``x, y = x.to(device), y.to(device)`` behind what assigns several."""
    wrong, site = offender(observation), born(observation)
    if wrong.get("device") != "cpu" or site is None or wrong.get("kind") in ("parameter", "buffer"):
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    for statement in at_line(source, site.line, ast.Assign):
        target = statement.targets[0]
        targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        device = device_name(source, statement) or of_module(source, statement)
        if device and names == [source.code(target)] and isinstance(statement.value, _ATOMS):
            return site.path, [moved_to(source, statement.value, device)]
        if device and names and len(names) == len(targets):
            moved = ", ".join(f"{name}.to({device})" for name in names)
            return site.path, [changes.after(source, statement, f"{', '.join(names)} = {moved}")]
    return None

"""A tensor of the host whose maker has no place for a device: what its statement assigns is moved behind it."""

from __future__ import annotations

import ast
from dataclasses import replace

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.migrate.repairs.sites import at_line, born, of_module, offender
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
            end = source.span(statement.value)[1]
            return site.path, [(end, end, f".to({device})")]
        if device and names and len(names) == len(targets):
            moved = ", ".join(f"{name}.to({device})" for name in names)
            return site.path, [changes.after(source, statement, f"{', '.join(names)} = {moved}")]
    return None

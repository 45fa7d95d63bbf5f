"""A tensor of the host whose maker has no place for a device: what its statement assigns is moved behind it."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.migrate.repairs.sites import at_line, born, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``x, y = x.to(device), y.to(device)`` behind ``x, y = map(torch.LongTensor, pairs)``."""
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
        device = device_name(source, statement)
        if device and names and len(names) == len(targets):
            moved = ", ".join(f"{name}.to({device})" for name in names)
            return site.path, [changes.after(source, statement, f"{', '.join(names)} = {moved}")]
    return None

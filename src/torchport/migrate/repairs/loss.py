"""The weights of a loss: the loss is moved where it is built."""

from __future__ import annotations

import ast

from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.migrate.repairs.sites import offender
from torchport.migrate.tree import Tree
from torchport.record import Observation

_WEIGHTS = (".weight", ".pos_weight")


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``criterion = nn.CrossEntropyLoss(weight=w).to(device)``."""
    name, site = offender(observation).get("name"), observation.site
    if site is None or not isinstance(name, str) or not name.endswith(_WEIGHTS):
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    wanted = name.rsplit(".", 1)[0]
    for statement in source.nodes(ast.Assign):
        call, device = statement.value, device_name(source, statement)
        kept = any(source.code(target) == wanted for target in statement.targets)
        if kept and device and isinstance(call, ast.Call) and source.name(call.func).endswith("Loss"):
            end = source.span(call)[1]
            return site.path, [(end, end, f".to({device})")]
    return None

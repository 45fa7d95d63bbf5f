"""What a loader gives is moved at the beginning of its loop."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.check.source import Source
from torchport.migrate.repairs.sites import born, offender
from torchport.record import Observation


def repair(observation: Observation, read: Callable[[str], Source | None]) -> tuple[str, list[Change]] | None:
    """``x = x.to(device)`` as the first statement, for a name that the loop binds."""
    site = born(observation)
    wrong = offender(observation)
    if site is None or wrong.get("born_by") != "DataLoader" or wrong.get("device") != "cpu":
        return None
    source = read(site.path)
    if source is None:
        return None
    for loop in source.nodes(ast.For):
        if loop.lineno != site.line or not source.indent(loop.body[0]):
            continue
        taken = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        name = wrong.get("name")
        device = device_name(source, loop)
        if isinstance(name, str) and name in taken and device:
            return site.path, [changes.before(source, loop.body[0], f"{name} = {name}.to({device})")]
    return None

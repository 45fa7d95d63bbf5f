"""The last resort: the tensor is moved where it is used, to the device of what it meets."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchport.check.rule import Change
from torchport.check.rules.meetings import device_expression
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, offender, other
from torchport.record import Observation


def repair(observation: Observation, read: Callable[[str], Source | None]) -> tuple[str, list[Change]] | None:
    """``tensor.to(other.device)`` at the line where they meet, where the line has a name for the tensor."""
    wrong, right, site = offender(observation), other(observation), observation.site
    name = wrong.get("name")
    if site is None or not isinstance(name, str) or wrong.get("device") != "cpu":
        return None
    source = read(site.path)
    if source is None:
        return None
    for kind in (ast.Name, ast.Attribute, ast.Subscript):
        for node in at_line(source, site.line, kind):
            if not isinstance(node.ctx, ast.Load) or source.code(node) != name:
                continue
            known = right.get("name")
            device = f"{known}.device" if isinstance(known, str) and known else device_expression(source, node)
            if device:
                end = source.span(node)[1]
                return site.path, [(end, end, f".to({device})")]
    return None

"""A module whose parameters are still on the host is moved where it is built."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchport.check.flow.analyse import modules
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.check.source import Source
from torchport.migrate.repairs.sites import born, offender
from torchport.record import Observation


def repair(observation: Observation, read: Callable[[str], Source | None]) -> tuple[str, list[Change]] | None:
    """``.to(device)`` behind the call that builds the module that the parameter belongs to."""
    wrong, site = offender(observation), born(observation)
    if wrong.get("kind") not in ("parameter", "buffer") or wrong.get("device") != "cpu" or site is None:
        return None
    source = read(site.path)
    if source is None:
        return None
    for call in modules(source):
        device = device_name(source, call)
        end = source.span(call)[1]
        if not device or source.text[end:].startswith(".to("):
            continue
        if call.lineno <= site.line <= (call.end_lineno or call.lineno) and isinstance(source.parent(call), ast.Assign):
            return site.path, [(end, end, f".to({device})")]
    return None

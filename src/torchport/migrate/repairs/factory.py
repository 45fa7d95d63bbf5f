"""A tensor that a factory makes on the host is made, or moved, where it is needed."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchport.check.rule import Change
from torchport.check.rules.device.tensor_attr_not_buffer import registered
from torchport.check.rules.kinds import FACTORIES, LEGACY
from torchport.check.rules.meetings import device_expression, factory_on
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, born, offender
from torchport.record import Observation

_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp, ast.Set)


def repair(observation: Observation, read: Callable[[str], Source | None]) -> tuple[str, list[Change]] | None:
    """``device=`` for the factory of that line, or the tensor registered as a buffer."""
    wrong, site = offender(observation), born(observation)
    if wrong.get("device") != "cpu" or site is None or wrong.get("kind") in ("parameter", "gradient"):
        return None
    source = read(site.path)
    if source is None:
        return None
    for statement in at_line(source, site.line, ast.Assign):
        owner = source.method_class(statement)
        match statement.targets:
            case [ast.Attribute(value=ast.Name(id="self"), attr=name)] if (
                owner and source.is_module_class(owner) and not isinstance(statement.value, _CONTAINERS)
            ):
                changes = list(registered(source, statement, name))
                if changes:
                    return site.path, changes
    for call in at_line(source, site.line, ast.Call):
        made = source.name(call.func)
        if made not in FACTORIES and made not in LEGACY:
            continue
        device = device_expression(source, call)
        changes = list(factory_on(source, call, device))
        if not changes and device and made in LEGACY:
            end = source.span(call)[1]
            changes = [(end, end, f".to({device})")]
        if changes:
            return site.path, changes
    return None

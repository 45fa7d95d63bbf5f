"""What a loader gives is moved at the beginning of its loop."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import device_name
from torchport.migrate.repairs.sites import born, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation


def names(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``x = x.to(device)``, for a name that the loop binds."""
    return _moved(observation, tree, "{name} = {name}.to({device})", whole=False)


def whole(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``batch = batch.to(device)``, for a batch that knows how."""
    return _moved(observation, tree, "{name} = {name}.to({device})", whole=True)


def mapping(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """The tensors of a dictionary."""
    moved = "{{key: value.to({device}) if torch.is_tensor(value) else value for key, value in {name}.items()}}"
    return _moved(observation, tree, "{name} = " + moved, whole=True)


def sequence(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """The tensors of a list or tuple."""
    moved = "[value.to({device}) if torch.is_tensor(value) else value for value in {name}]"
    return _moved(observation, tree, "{name} = " + moved, whole=True)


def _moved(observation: Observation, tree: Tree, line: str, whole: bool) -> tuple[str, list[Change]] | None:
    site, wrong = born(observation), offender(observation)
    if site is None or wrong.get("born_by") != "DataLoader" or wrong.get("device") != "cpu":
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    for loop in source.nodes(ast.For):
        device = device_name(source, loop)
        if loop.lineno != site.line or not source.indent(loop.body[0]) or not device:
            continue
        taken = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
        name = wrong.get("name")
        if not whole and name not in taken:
            continue
        if whole:
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
            name = targets[-1].id if isinstance(targets[-1], ast.Name) and len(targets) <= 2 else None
        if name is not None:
            return site.path, [changes.before(source, loop.body[0], line.format(name=name, device=device))]
    return None

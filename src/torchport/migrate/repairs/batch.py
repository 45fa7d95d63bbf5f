"""What a loader gives is moved at the beginning of its loop."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import all_moved, device_name
from torchport.check.source import Source
from torchport.migrate.repairs.sites import born, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation


def names(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``x = x.to(device)``, for a name that the loop binds."""
    return _moved(observation, tree, "{name} = {name}.to({device})", whole=False)


def unpacked(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``x, y = x.to(device), y.to(device)``, where only one that has another name by now is known: for all that the
    loop takes, or behind the statement that takes the batch apart.
    """
    found = _loop(observation, tree)
    if found is None:
        return None
    source, loop, device = found
    if _taken(loop.target, offender(observation).get("name")):
        return None
    target = loop.target
    if source.code(loop.iter).startswith("enumerate(") and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    names = [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    if isinstance(target, ast.Tuple):
        return source.path, [changes.before(source, loop.body[0], all_moved(names, device))]
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)) if name in names:
                named = [each.id for each in parts if isinstance(each, ast.Name)]
                if len(named) == len(parts):
                    return source.path, [changes.after(source, statement, all_moved(named, device))]
    return None


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
    found = _loop(observation, tree)
    if found is None:
        return None
    source, loop, device = found
    name = offender(observation).get("name")
    if not whole and not _taken(loop.target, name):
        return None
    if whole:
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        name = targets[-1].id if isinstance(targets[-1], ast.Name) and len(targets) <= 2 else None
    if name is None:
        return None
    first = loop.body[0]
    moved = [] if whole else _moved_there(source, first, device)
    if moved:  # one line for all of them, in the order of the loop
        order = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
        names = sorted([*moved, str(name)], key=lambda each: order.index(each) if each in order else len(order))
        return source.path, [changes.replace(source, first, all_moved(names, device))]
    return source.path, [changes.before(source, first, line.format(name=name, device=device))]


def _loop(observation: Observation, tree: Tree) -> tuple[Source, ast.For, str] | None:
    """The loop that took the batch of the offender from a loader, and how the device is called there."""
    site, wrong = born(observation), offender(observation)
    if site is None or wrong.get("born_by") != "DataLoader" or wrong.get("device") != "cpu":
        return None
    source = tree.read(site.path)
    for loop in source.nodes(ast.For) if source is not None else ():
        device = device_name(source, loop) if source is not None else ""
        if source is not None and loop.lineno == site.line and source.indent(loop.body[0]) and device:
            return source, loop, device
    return None


def _taken(target: ast.expr, name: object) -> bool:
    return any(each.id == name for each in ast.walk(target) if isinstance(each, ast.Name))


def _moved_there(source: Source, statement: ast.stmt, device: str) -> list[str]:
    """The names that a statement like ``x = x.to(device)`` moves, and it does nothing else."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    names = [
        each.id for each in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(each, ast.Name)
    ]
    return names if source.code(statement) == all_moved(names, device) else []

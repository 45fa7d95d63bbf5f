"""Ranks that share a GPU: each chooses its own before the group is made."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.ranks import INIT
from torchport.check.source import Source, argument, constant
from torchport.migrate.tree import Tree
from torchport.record import Observation

_WITHOUT_GPUS = ("gloo", "mpi", "ucc")


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``torch.cuda.set_device(…)`` in front of ``init_process_group``, with the rank that it gets or the launcher's."""
    if observation.id != "R404":
        return None
    for path in tree.paths():
        source = tree.read(path)
        for call in source.calls(INIT) if source is not None else ():
            backend = constant(argument(call, "backend", 0))
            if source is not None and backend not in _WITHOUT_GPUS and isinstance(source.parent(call), ast.Expr):
                return path, _chosen(source, call, guarded=backend != "nccl")
    return None


def _chosen(source: Source, call: ast.Call, guarded: bool) -> list[Change]:
    """``guarded`` where the group may be one without GPUs."""
    given = argument(call, "rank")
    rank = source.code(given) if isinstance(given, ast.Name) else 'int(os.environ["LOCAL_RANK"])'
    lines = [f"torch.cuda.set_device({rank})"]
    if guarded:
        lines = ["if torch.cuda.is_available():", f"    {lines[0]}"]
    found = [changes.before(source, source.statement(call), *lines)]
    needed = ("torch",) if isinstance(given, ast.Name) else ("os", "torch")
    for module in needed:
        bound = source.scope_at(call).find(module)
        if bound is None or not any(way.imported == module for way in bound[1]):
            found.append(changes.import_line(source, module))
    return found

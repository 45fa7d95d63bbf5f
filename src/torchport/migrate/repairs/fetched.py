"""A tensor of the GPU that host code reads far from where it was made: it is brought to the host where it is made."""

from __future__ import annotations

import ast

from torchport.check.rule import Change
from torchport.migrate.repairs.sites import at_line, born, offender
from torchport.migrate.tree import Tree
from torchport.record import Observation

_VALUES = (ast.Call, ast.Attribute, ast.Subscript, ast.Name)


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``action = q.max(1)[1].cpu()``, where a list of actions is read as a NumPy array."""
    site = born(observation)
    if observation.id != "R102" or site is None or offender(observation).get("device") == "cpu":
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    for kind in (ast.Assign, ast.Return):
        for statement in at_line(source, site.line, kind):
            if isinstance(statement.value, _VALUES) and not source.code(statement.value).endswith(".cpu()"):
                end = source.span(statement.value)[1]
                return site.path, [(end, end, ".cpu()")]
    return None

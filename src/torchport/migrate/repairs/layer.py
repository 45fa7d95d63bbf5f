"""A layer that is built where it is called is moved to its input there; that it is never trained stays as it was."""

from __future__ import annotations

import ast

from torchport.check.rule import Change
from torchport.check.source import is_module_class
from torchport.migrate.repairs.sites import at_line
from torchport.migrate.repairs.use import root
from torchport.migrate.tree import Tree
from torchport.record import Observation


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``nn.Linear(4, 4)(x)`` becomes ``nn.Linear(4, 4).to(x.device)(x)``."""
    site = observation.site
    source = tree.read(site.path) if site is not None else None
    if site is None or source is None:
        return None
    for call in at_line(source, site.line, ast.Call):
        made = call.func
        if isinstance(made, ast.Call) and call.args and is_module_class(source.name(made.func)):
            given = root(call.args[0].left if isinstance(call.args[0], ast.BinOp) else call.args[0])
            if given is not None and not source.name(given):
                end = source.span(made)[1]
                return site.path, [(end, end, f".to({source.code(given)}.device)")]
    return None

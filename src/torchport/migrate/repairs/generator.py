"""A generator of the CPU goes on drawing there, and what it draws is moved: the numbers stay what they were."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.migrate.repairs.sites import at_line
from torchport.migrate.tree import Tree
from torchport.record import Observation


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``torch.randn(…, generator=g, device=d)`` becomes ``torch.randn(…, generator=g).to(d)``."""
    site = observation.site
    source = tree.read(site.path) if observation.id == "R105" and site is not None else None
    if source is None or site is None:
        return None
    for call in at_line(source, site.line, ast.Call):
        words = {each.arg: each for each in call.keywords}
        if "generator" not in words:
            continue
        end = source.span(call)[1]
        if "device" in words:
            device = source.code(words["device"].value)
            return site.path, [changes.remove_argument(source, call, words["device"]), (end, end, f".to({device})")]
        if call.args and isinstance(call.args[0], (ast.Name, ast.Attribute)):
            first = source.span(call.args[0])[1]
            return site.path, [(first, first, ".cpu()"), (end, end, f".to({source.code(call.args[0])}.device)")]
    return None

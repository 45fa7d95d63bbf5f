"""A generator of the CPU goes on drawing there, and what it draws is moved: the numbers stay what they were."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.migrate.repairs.sites import at_line, born, offender
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


def on_host(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """A generator of the GPU that a loader, say, draws with on the CPU, made there: its numbers stay what they were."""
    wrong, site = offender(observation), born(observation)
    if observation.id != "R105" or site is None or wrong.get("device") == "cpu":
        return None
    source = tree.read(site.path)
    for call in at_line(source, site.line, ast.Call) if source is not None else ():
        if source is not None and source.name(call.func) == "torch.Generator" and (call.args or call.keywords):
            start, end = source.span(call.func)[1], source.span(call)[1]
            return site.path, [(start, end, "()")]
    return None

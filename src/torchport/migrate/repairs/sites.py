"""What an observation says, and the nodes of the source at its places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.meetings import name_for_all
from torchport.check.source import Source, constant
from torchport.record import Observation, Site


def offender(observation: Observation) -> dict[str, Any]:
    """The tensor that is on the wrong device."""
    tensors = observation.fields.get("tensors") or []
    index = observation.fields.get("offender")
    return tensors[index] if isinstance(index, int) and index < len(tensors) else {}


def other(observation: Observation) -> dict[str, Any]:
    """A tensor of the call that is where the offender should be."""
    wrong = offender(observation)
    right = [each for each in observation.fields.get("tensors") or [] if each.get("device") != wrong.get("device")]
    named = [each for each in right if each.get("name")]
    return next(iter(named or right), {})


def born(observation: Observation) -> Site | None:
    """Where the offender was made."""
    site = offender(observation).get("born")
    return site if isinstance(site, Site) else None


def rooted(observation: Observation) -> Observation | None:
    """The fault as if the offender were what it was computed from, where that was made elsewhere on the host."""
    wrong, index = offender(observation), observation.fields.get("offender")
    if not isinstance(wrong.get("root"), Site) or wrong.get("device") != "cpu":
        return None
    root = {**wrong, "born": wrong["root"], "born_by": wrong.get("root_by")}
    tensors = [root if number == index else each for number, each in enumerate(observation.fields["tensors"])]
    return replace(observation, fields={**observation.fields, "tensors": tensors})


def at_line(source: Source, line: int, kind: type[ast.AST]) -> Iterator[Any]:
    """The nodes of one type that reach over a line, the innermost last."""
    for node in source.nodes(kind):
        found: Any = node
        if found.lineno <= line <= (found.end_lineno or found.lineno):
            yield found


def named(source: Source, line: int, name: object) -> ast.expr | None:
    """The expression of a line that has this name, ``stats["mean"]`` say, however it is spelled."""
    if not isinstance(name, str):
        return None
    try:
        wanted = ast.unparse(ast.parse(name, mode="eval"))
    except SyntaxError:
        return None
    for kind in (ast.Name, ast.Attribute, ast.Subscript):
        for node in at_line(source, line, kind):
            if isinstance(node.ctx, ast.Load) and ast.unparse(node) == wanted:
                found: ast.expr = node
                return found
    return None


def moved_to(source: Source, node: ast.expr, device: str) -> Change:
    """``node.to(device)``; what is brought to the CPU by ``.to("cpu")`` goes to the device in its place."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to"), args=[first]) if _is_cpu(source, first):
            return changes.replace(source, first, device)
    end = source.span(node)[1]
    return end, end, f".to({device})"


def _is_cpu(source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and source.name(node.func) == "torch.device" and node.args:
        node = node.args[0]
    return bool(constant(node) == "cpu")


def of_module(source: Source, node: ast.AST) -> str:
    """Where the module is in whose method a node stands, empty elsewhere."""
    owner = source.method_class(node)
    if owner is None or not source.is_module_class(owner):
        return ""
    return name_for_all(source, node) or "next(self.parameters()).device"

"""A tensor of the GPU that has to be on the host: read by NumPy, or an argument that host code reads."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchport.check.rule import Change
from torchport.check.source import Source
from torchport.migrate.repairs.sites import at_line, offender
from torchport.record import Observation

_NUMPY_MAKERS = frozenset({"numpy", "asarray", "array", "plot", "imshow", "append"})


def repair(observation: Observation, read: Callable[[str], Source | None]) -> tuple[str, list[Change]] | None:
    """``.cpu()`` behind it: in front of ``.numpy()``, behind lengths and indices."""
    site = observation.site
    if observation.id not in ("R102", "R104", "R103") or site is None:
        return None
    source = read(site.path)
    if source is None:
        return None
    name = offender(observation).get("name")
    found: list[Change] = []
    if observation.id == "R102":
        for call in at_line(source, site.line, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy":
                end = source.span(call.func.value)[1]
                found.append((end, end, ".cpu()"))
    if not found and name:
        found = _named(source, site.line, str(name))
    return (site.path, found) if found else None


def _named(source: Source, line: int, name: str) -> list[Change]:
    """The expression by which the line knows the tensor."""
    for kind in (ast.Name, ast.Attribute, ast.Subscript):
        for node in at_line(source, line, kind):
            if isinstance(node.ctx, ast.Load) and source.code(node) == name:
                end = source.span(node)[1]
                return [(end, end, ".cpu()")]
    return []

"""A tensor of the GPU that has to be on the host: read by NumPy, or an argument that host code reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import Change
from torchport.check.source import Source, argument
from torchport.migrate.repairs.sites import at_line, named, offender, other
from torchport.migrate.tree import Tree
from torchport.record import Observation

_INDICES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_LENGTHS = "torch.nn.utils.rnn.pack_padded_sequence"


def repair(observation: Observation, tree: Tree) -> tuple[str, list[Change]] | None:
    """``.cpu()`` behind it: in front of ``.numpy()``, behind lengths, states and indices."""
    site = observation.site
    if observation.id not in ("R102", "R104", "R103") or site is None:
        return None
    source = tree.read(site.path)
    if source is None:
        return None
    for node in _read_on_host(source, observation, site.line):
        end = _behind(source, node)
        if isinstance(node, ast.BinOp) and end == source.span(node)[1]:
            start = source.span(node)[0]
            return site.path, [(start, start, "("), (end, end, ").cpu()")]
        return site.path, [(end, end, ".cpu()")]
    return None


def _behind(source: Source, node: ast.AST) -> int:
    """Where a method of an expression begins: behind the parentheses that it stands in."""
    above = source.parent(node)
    end = source.span(node)[1]
    if not isinstance(above, ast.Attribute):
        return end
    return source.text.rindex(".", end, source.span(above)[1])


def _read_on_host(source: Source, observation: Observation, line: int) -> Iterator[ast.AST]:
    """The expressions that may be meant, the likeliest first."""
    if observation.id == "R102":
        for call in at_line(source, line, ast.Call):
            read = isinstance(call.func, ast.Attribute) and call.func.attr == "numpy"
            if read and not source.code(call.func.value).endswith(".cpu()"):
                yield call.func.value
    node = named(source, line, offender(observation).get("name"))
    if node is not None:
        yield node
    if observation.id == "R102" and node is None:  # a sum with an array, which reads the other side
        for sum_ in at_line(source, line, ast.BinOp):
            if source.code(sum_.right).endswith(".numpy()"):
                yield sum_.left
    if observation.id == "R103":  # an index without a name, of a table that has one
        table = named(source, line, other(observation).get("name"))
        above = source.parent(table) if table is not None else None
        if isinstance(above, ast.Subscript) and above.value is table and isinstance(above.slice, _INDICES):
            yield above.slice
    if observation.id == "R104":
        for call in at_line(source, line, ast.Call):
            lengths = argument(call, "lengths", 1) if source.name(call.func) == _LENGTHS else None
            if isinstance(lengths, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                yield lengths

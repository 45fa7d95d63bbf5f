"""What ends a program wherever it runs: an interface of a torch or a Python of its time, gone since or changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from torchport.check.changes import replace
from torchport.check.rule import Change
from torchport.check.source import Source, constant
from torchport.migrate.repairs.sites import at_line

_MASKED = frozenset("masked_fill masked_fill_ masked_select masked_scatter masked_scatter_ where".split())
_ASYNC = re.compile(r"(?<=[(,\s])async(?=\s*=\s*(?:True|False)\b)")


def changes(source: Source, line: int, message: str) -> list[Change]:
    """What to write at the line where an error with that message was raised; empty where that is not known."""
    for pattern, repair in _REPAIRS:
        if pattern.search(message):
            return list(repair(source, line))
    return []


def parsed(text: str) -> str:
    """``async=True`` of torch 0.3, which is no Python since 3.7, under its name of today."""
    return _ASYNC.sub("non_blocking", text)


def _number(source: Source, line: int) -> Iterator[Change]:
    """``loss.data[0]`` of what has no dimensions any more: ``loss.item()``."""
    found = [
        node
        for node in at_line(source, line, ast.Subscript)
        if constant(node.slice) == 0 and isinstance(node.ctx, ast.Load)
    ]
    old = [node for node in found if isinstance(node.value, ast.Attribute) and node.value.attr == "data"]
    for node in old or found[-1:]:
        scalar = node.value.value if old else node.value
        yield replace(source, node, f"{source.code(scalar)}.item()")


def _target(source: Source, line: int) -> Iterator[Change]:
    """``criterion(output, target[i])``, whose target was a tensor with one number and has no dimensions now."""
    for call in at_line(source, line, ast.Call):
        if (
            len(call.args) == 2
            and isinstance(call.args[1], (ast.Subscript, ast.Name))
            and not source.name(call.args[1])
        ):
            end = source.span(call.args[1])[1]
            yield end, end, ".unsqueeze(0)"
            return


def _mask(source: Source, line: int) -> Iterator[Change]:
    """A mask of bytes where torch takes bool alone."""
    for call in at_line(source, line, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _MASKED and call.args:
            mask = call.args[1 if source.name(call.func).startswith("torch.") and call.func.attr != "where" else 0]
            start, end = source.span(mask)
            if isinstance(mask, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                yield end, end, ".bool()"
            else:
                yield start, start, "("
                yield end, end, ").bool()"


def _opposite(source: Source, line: int) -> Iterator[Change]:
    """``1 - mask``, where a comparison gives bool now."""
    for node in at_line(source, line, ast.BinOp):
        if isinstance(node.op, ast.Sub) and constant(node.left) == 1:
            start, _end = source.span(node)
            behind = source.text.index("-", source.span(node.left)[1]) + 1
            while source.text[behind] == " ":
                behind += 1
            yield start, behind, "~"
            return


def _reshape(source: Source, line: int) -> Iterator[Change]:
    """``view`` of what is laid out in another order now."""
    for call in at_line(source, line, ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "view":
            end = source.span(call.func)[1]
            yield end - len("view"), end, "reshape"


_Repair = Callable[[Source, int], Iterator[Change]]
_REPAIRS: tuple[tuple[re.Pattern[str], _Repair], ...] = tuple(
    (re.compile(pattern), repair)
    for pattern, repair in (
        (r"invalid index of a 0-dim tensor", _number),
        (r"input batch_size \(\d+\) to match target batch_size \(0\)", _target),
        (r"boolean masks|expected.* mask.* bool|condition tensor, but got a tensor with dtype Byte", _mask),
        (r"Subtraction, the `-` operator, with a bool tensor", _opposite),
        (r"view size is not compatible with input tensor's size and stride", _reshape),
    )
)

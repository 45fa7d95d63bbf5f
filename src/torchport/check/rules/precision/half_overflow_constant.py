"""Finds masks filled with a number that float16 does not have.

Its largest number is 65504. ``masked_fill(mask, -1e9)`` on a half tensor, which autocast makes of many scores, fails:
"value cannot be converted to type at::Half without overflow".

Bad::

    import torch


    def attention(scores, mask):
        scores = scores.masked_fill(mask == 0, -1e9)
        return torch.softmax(scores, dim=-1)

Good::

    import torch


    def attention(scores, mask):
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        return torch.softmax(scores, dim=-1)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import INFO, WARNING, Change, Hit, Rule
from torchport.check.rules.ranks import home
from torchport.check.rules.training import receiver
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C407",
    "half-overflow-constant",
    WARNING,
    mark("`{value}` is beyond float16, whose largest number is 65504: this fails in mixed precision"),
    mark("Take the limit of the tensor's own type: `torch.finfo({name}.dtype).{limit}`"),
)
_LARGEST = 65504.0
_SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.log_softmax", "torch.nn.functional.log_softmax")

_HALF = re.compile(r"autocast|float16|\.half\(|GradScaler|amp\b")


def look(source: Source) -> Iterator[Hit]:
    """``masked_fill`` with a float beyond float16."""
    for call in source.calls(".masked_fill", ".masked_fill_", "torch.masked_fill"):
        owner = receiver(call)
        if source.name(call.func) == "torch.masked_fill":
            owner, value = (call.args[0], argument(call, "value", 2)) if call.args else (None, None)
        else:
            value = argument(call, "value", 1)
        if value is None or owner is None or "float32" in source.code(owner) or ".float()" in source.code(owner):
            continue
        numbers = [_number(each) for each in source.values(value)] or [_number(value)]
        number = numbers[0]
        if number is None or len(numbers) > 1 or not _LARGEST < abs(number) < float("inf"):
            continue
        limit = "min" if number < 0 else "max"
        fix: tuple[Change, ...] = ()
        if isinstance(owner, ast.Name):
            fix = ((*source.span(value), f"torch.finfo({owner.id}.dtype).{limit}"),)
        words = {"value": source.code(value), "name": source.code(owner), "limit": limit}
        safe = limit == "min" and _is_softmaxed(source, call)
        severity = WARNING if _HALF.search(source.text) else INFO  # a file may be used by one that is mixed
        yield Hit(value, words, fix, safe=safe, needs=("torch",) if fix else (), severity=severity)


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(value))):
            return -value
        case ast.Constant(value=float(value)):
            return value
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
            try:
                return float(text)
            except ValueError:
                return None
    return None


def _is_softmaxed(source: Source, call: ast.Call) -> bool:
    """Whether the filled tensor gets a name, and the next thing that its function does with it is a softmax."""
    match source.parent(call):
        case ast.Assign(targets=[ast.Name(id=name)]):
            later = [
                node
                for node in source.nodes(ast.Name)
                if node.id == name
                and isinstance(node.ctx, ast.Load)
                and node.lineno > (call.end_lineno or call.lineno)
                and home(source, node) is home(source, call)
            ]
            return bool(later) and _is_softmax_input(source, later[0])
    return False


def _is_softmax_input(source: Source, node: ast.Name) -> bool:
    above = source.parent(node)
    if isinstance(above, ast.Call):
        return source.name(above.func) in _SOFTMAX or "torch.nn.Softmax" in source.makers(above.func)
    return isinstance(above, ast.Attribute) and above.attr in ("softmax", "log_softmax")

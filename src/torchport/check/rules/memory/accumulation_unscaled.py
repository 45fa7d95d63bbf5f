"""Finds gradients that are added up over several batches and not divided by their number.

``backward`` adds; after four batches the gradient is four times that of their mean, as with a learning rate four
times as high.

Bad::

    import torch


    def train(model, loader, optimizer, criterion, accumulate=4):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if (i + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()

Good::

    import torch


    def train(model, loader, optimizer, criterion, accumulate=4):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            (loss / accumulate).backward()
            if (i + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.ranks import home
from torchport.check.rules.training import backwards, inner_loop, loss_of, optimizer_steps, within
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C608",
    "accumulation-unscaled",
    WARNING,
    mark("The gradients of `{count}` batches are added up and not divided by their number"),
    mark("Divide the loss by `{count}` before the backward pass"),
)


def look(source: Source) -> Iterator[Hit]:
    """Steps and ``zero_grad`` under ``if … % n == 0`` beside a backward in each round, where nothing divides by n."""
    for step in optimizer_steps(source):
        test = source.enclosing(step, ast.If)
        loop = inner_loop(source, step)
        count = _every(test.test) if test is not None else None
        if loop is None or test is None or count is None or not within(source, test, loop):
            continue
        clears = [call for call in source.calls(".zero_grad") if inner_loop(source, call) is loop]
        if not clears or not all(within(source, call, test) for call in clears):
            continue
        text = source.code(count)
        if _divides(source, home(source, step), text):
            continue
        for call in backwards(source):
            if inner_loop(source, call) is loop and not within(source, call, test):
                loss = loss_of(call)
                fix: tuple[Change, ...] = ()
                if isinstance(loss, ast.Name) and isinstance(count, (ast.Name, ast.Attribute, ast.Constant)):
                    fix = (changes.replace(source, loss, _quotient(source, call, loss, text)),)
                yield Hit(call, {"count": text}, fix)
                break


def _every(test: ast.expr) -> ast.expr | None:
    """The n of ``… % n == 0``."""
    match test:
        case ast.Compare(left=ast.BinOp(op=ast.Mod(), right=count), ops=[ast.Eq()]):
            return None if isinstance(count, ast.Constant) and count.value == 1 else count
        case ast.BoolOp(values=values):
            return next((found for each in values if (found := _every(each)) is not None), None)
    return None


def _divides(source: Source, here: ast.AST, count: str) -> bool:
    """Whether a function divides by that number, or multiplies, or sums up on purpose."""
    nodes: list[ast.BinOp | ast.AugAssign] = [*source.nodes(ast.BinOp), *source.nodes(ast.AugAssign)]
    for node in nodes:
        if isinstance(node.op, (ast.Div, ast.Mult)) and home(source, node) is here:
            right = node.right if isinstance(node, ast.BinOp) else node.value
            if count in source.code(right) or "accum" in source.code(right):
                return True
    return False


def _quotient(source: Source, call: ast.Call, loss: ast.Name, count: str) -> str:
    inner = isinstance(source.parent(loss), ast.Call)
    return f"{loss.id} / {count}" if inner else f"({loss.id} / {count})"

"""Finds conditions on the values of tensors, in ``forward`` or in the step of a training.

Python cannot go on before the GPU has the answer, so each such ``if`` waits for it; ``torch.compile`` breaks there.

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            if torch.isnan(x).any():
                x = torch.nan_to_num(x)
            return x

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return torch.nan_to_num(x)

Bad::

    import torch

    def train(model, loader, criterion):
        for x, y in loader:
            loss = criterion(model(x), y)
            assert torch.isfinite(loss).all()
            loss.backward()

Good::

    import torch

    def train(model, loader, criterion):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            if step % 100 == 0 and torch.isnan(loss):
                raise RuntimeError(step)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, LIKELY, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.steps import every_round
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C221",
    "tensor-bool-control-flow",
    INFO,
    mark("`{code}` as a condition waits for the GPU each time"),
    mark("Choose among values with `torch.where`, or ask only every 100 steps"),
    confidence=LIKELY,
)

_ASKING = tuple(f"torch.{name}" for name in ("any", "all", "isnan", "isinf", "isfinite", "equal", "allclose"))
_METHODS = (".any", ".all")


def look(source: Source) -> Iterator[Hit]:
    """Tests that are such a call, or ``not`` of one; under another condition they are not asked each time."""
    calls = source.calls(*_ASKING, *_METHODS)
    forwards = run_by_forward(source) if calls else set()
    steps = {loop for call in source.calls(".backward") for loop in source.loops(call)[:1]} if calls else set()
    for call in calls:
        branch = _tests(source, call)
        if branch is None or source.name(call.func).startswith("numpy"):
            continue
        function = source.function(branch)
        loop = next((each for each in source.loops(branch) if each in steps), None)
        in_forward = function in forwards and source.enclosing(branch, ast.If, ast.FunctionDef) is function
        if in_forward or (loop is not None and every_round(source, loop, branch)):
            yield Hit(call, {"code": source.code(call)})


def _tests(source: Source, call: ast.Call) -> ast.stmt | None:
    """The statement whose whole condition a call is."""
    if isinstance(call.func, ast.Attribute) and not source.name(call.func) and (call.args or call.keywords):
        return None
    child: ast.AST = call
    above = source.parent(call)
    while isinstance(above, ast.UnaryOp):
        child, above = above, source.parent(above)
    return above if isinstance(above, (ast.If, ast.While, ast.Assert)) and above.test is child else None

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
from torchport.check.rules.kinds import is_tensor
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.outputs import is_output
from torchport.check.rules.steps import every_round
from torchport.check.source import Source, parameters
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
    for call in dict.fromkeys(calls):  # torch.any has both kinds of name
        branch = _tests(source, call)
        if branch is None or not _is_on_tensor(source, call):
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


def _is_on_tensor(source: Source, call: ast.Call) -> bool:
    """A function of torch, or a method of what comes out of one, out of a module, or into ``forward``."""
    if source.name(call.func):
        return source.name(call.func).startswith("torch.")
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    parts = [value.left, *value.comparators] if isinstance(value, ast.Compare) else [value]
    for part in parts:
        if isinstance(part, ast.Call) and source.name(part.func).startswith("torch."):
            return True
        if part is not None and (is_tensor(source, part) or is_output(source, part)):
            return True
        function = source.function(call)
        inputs = parameters(function) if function is not None and function.name == "forward" else []
        if isinstance(part, ast.Name) and any(each.arg == part.id for each in inputs):
            return True
    return False

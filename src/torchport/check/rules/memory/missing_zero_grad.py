"""Finds a training loop that never clears its gradients.

``backward`` adds to the gradients that are there. Without ``zero_grad`` each step goes along the sum of all before.

Bad::

    import torch
    from torch import nn


    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()

Good::

    import torch
    from torch import nn


    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

Good::

    import torch
    from torch import nn


    def train(model, loader):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            for parameter in model.parameters():
                parameter.grad = None
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.rules.kinds import is_optimizer
from torchport.check.rules.training import backwards, inner_loop, optimizer_steps, stepped
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C605",
    "missing-zero-grad",
    ERROR,
    mark("`{code}` adds to the gradients of all steps before: nothing clears them"),
    mark("Call `{optimizer}.zero_grad()` before it"),
)
_CLEARS = re.compile(
    r"zero_grad|zero_\w*grad|clear_grad|reset_grad|\.grad\s*=|\.grad(\.data)?\.zero_|del \w+\.grad|\.grad\.fill_"
)


def look(source: Source) -> Iterator[Hit]:
    """Loops in which an optimizer of this file steps after a backward pass, in a file that clears no gradient."""
    if not source.calls(".backward") or _CLEARS.search(code_of(source)):
        return
    for call in backwards(source):
        loop = inner_loop(source, call)
        steps = [
            each
            for each in optimizer_steps(source)
            if loop is not None
            and inner_loop(source, each) is loop
            and is_optimizer(source, stepped(source, each) or each)
        ]
        if not steps:
            continue
        owner = stepped(source, steps[0])
        optimizer = source.code(owner) if owner is not None else ""
        statement = source.statement(call)
        fix: tuple[Change, ...] = ()
        if len(steps) == 1 and isinstance(statement, ast.Expr) and source.indent(statement):
            fix = (changes.before(source, statement, f"{optimizer}.zero_grad()"),)
        yield Hit(call, {"code": source.code(call), "optimizer": optimizer}, fix)
        return

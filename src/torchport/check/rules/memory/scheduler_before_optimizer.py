"""Finds a learning-rate schedule that is a step ahead of the optimizer.

Since torch 1.1 ``scheduler.step()`` belongs after ``optimizer.step()``. The other way round the first learning rate
is never used, and torch warns.

Bad::

    import torch


    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            scheduler.step()
            optimizer.step()

Good::

    import torch


    def train(model, loader, criterion):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            scheduler.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.training import called_functions, optimizer_steps, receiver, within
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C609",
    "scheduler-before-optimizer",
    WARNING,
    mark("`{code}` comes before the step of the optimizer in each round: the first learning rate is left out"),
    mark("Call it after the optimizer has stepped"),
    since=(1, 1),
)


def look(source: Source) -> Iterator[Hit]:
    """Steps of a schedule that stand before those of an optimizer in one block of a loop, and after none of them."""
    for call in source.calls(".step"):
        owner = receiver(call)
        statement = source.parent(call)
        if owner is None or call.args or call.keywords or not isinstance(statement, ast.Expr):
            continue
        if not any(name.startswith("torch.optim.lr_scheduler.") for name in source.makers(owner)):
            continue
        loops = source.loops(call)
        block = loops[0].body if loops else []
        if statement not in block:
            continue
        place = block.index(statement)
        stepping = [index for index, each in enumerate(block) if _steps(source, each)]
        if not stepping or stepping[0] < place:
            continue
        target = block[stepping[-1]]
        fix: tuple[Change, ...] = ()
        if source.indent(statement) and source.text[source.span(statement)[1] :].partition("\n")[0].strip() == "":
            fix = (changes.remove_statement(source, statement), changes.after(source, target, source.code(call)))
        yield Hit(call, {"code": source.code(call)}, fix)


def _steps(source: Source, statement: ast.stmt) -> bool:
    """Whether an optimizer steps somewhere in a statement, or in a function of this file that it calls."""
    steps = optimizer_steps(source)
    if any(within(source, call, statement) for call in steps):
        return True
    functions = {source.function(call) for call in steps}
    return any(function in functions for function in called_functions(source, statement))

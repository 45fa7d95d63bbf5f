"""Finds ``torch.cuda.empty_cache()`` in each step of a loop over batches.

It waits for the GPU and gives memory back that the next step has to ask for again. It makes no more memory free for
the program itself.

Bad::

    import torch

    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()

Good::

    import torch

    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

Bad::

    import torch
    from torch.utils.data import DataLoader

    def test(model, dataset):
        for x in DataLoader(dataset):
            model(x)
            torch.cuda.empty_cache()

Good::

    import torch

    def train(model, loader, optimizer, criterion):
        for epoch in range(10):
            torch.cuda.empty_cache()
            for step, (x, y) in enumerate(loader):
                criterion(model(x), y).backward()
                if step % 1000 == 0:
                    torch.cuda.empty_cache()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_statement
from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.steps import every_round, step_loops
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C219",
    "empty-cache-in-loop",
    WARNING,
    mark("`{code}` in each step slows the training down, and frees nothing that the next step does not take again"),
    mark("Leave it out"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Calls that every round of a loop over batches makes."""
    calls = source.calls("torch.cuda.empty_cache", "torch.accelerator.empty_cache")
    steps = step_loops(source) if calls else []
    for call in calls:
        loops = source.loops(call)
        statement = source.parent(call)
        if loops and loops[0] in steps and every_round(source, loops[0], call) and isinstance(statement, ast.Expr):
            yield Hit(call, {"code": source.code(call)}, (remove_statement(source, statement),), safe=True)

"""Finds a backward pass inside ``autocast``.

The backward pass takes for each operation the type that the forward pass took; inside the block it may compute in
another one. Only the forward pass and the loss belong there.

Bad::

    import torch


    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()

Good::

    import torch


    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.nesting import above
from torchport.check.rules.training import autocast_around, backwards
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C406",
    "backward-inside-autocast",
    WARNING,
    mark("`{code}` runs inside autocast"),
    mark("Move it behind the block: only the forward pass and the loss belong there"),
)


def look(source: Source) -> Iterator[Hit]:
    """``.backward()`` in the block of an autocast that is on."""
    for call in backwards(source):
        block = autocast_around(source, call)
        if block is None:
            continue
        statement = source.statement(call)
        fix: tuple[Change, ...] = ()
        place = next((index for index, each in enumerate(block.body) if each is statement), 0)
        last = block.body[-1]
        if place and isinstance(statement, ast.Expr) and last.end_lineno == block.end_lineno:
            fix = above(source, block.body[place:], block)
        yield Hit(call, {"code": source.code(call)}, fix)

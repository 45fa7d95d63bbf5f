"""Finds several values that are fetched from the GPU in each step of a training.

Each ``.item()`` waits until the GPU has done all that it was given, and the next step starts from nothing.

Bad::

    def train(model, loader, optimizer, criterion):
        total, right = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            right += (out.argmax(1) == y).sum().item()
        return total, right

Good::

    def train(model, loader, optimizer, criterion):
        total, right = 0.0, 0
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            right += (out.argmax(1) == y).sum()
        return total.item(), right.item()

Bad::

    def train(model, loader, optimizer, criterion, log):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            print(step, loss.item())
            log.write(f"{loss.item()}")

Good::

    def train(model, loader, optimizer, criterion):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(step, loss.item(), model.scale.item())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.steps import every_round
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C212",
    "item-every-step",
    INFO,
    mark("Each step waits for the GPU {count} times to fetch a number"),
    mark("Sum on the GPU, `total += loss.detach()`, and fetch once, or every 100 steps"),
    confidence=CERTAIN,
)

_FETCHING = (".item", ".tolist")


def look(source: Source) -> Iterator[Hit]:
    """Two or more fetches that every round of a loop with ``.backward()`` in it makes: one hit at the first."""
    found: dict[ast.AST, list[ast.Call]] = {}
    steps = {loop for call in source.calls(".backward") for loop in source.loops(call)[:1]}
    for call in source.calls(*_FETCHING) if steps else ():
        loops = source.loops(call)
        if loops and loops[0] in steps and not call.args and every_round(source, loops[0], call):
            found.setdefault(loops[0], []).append(call)
    for calls in found.values():
        if len(calls) > 1:
            seen = tuple((source.span(call)[0], mark("and here")) for call in calls[1:])
            yield Hit(calls[0], {"count": len(calls)}, seen=seen)

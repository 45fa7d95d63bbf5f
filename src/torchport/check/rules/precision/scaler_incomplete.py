"""Finds a GradScaler that is used by half.

The optimizer has to step through the scaler, which divides the gradients again and leaves out a step whose gradients
have overflowed; and ``update`` has to follow, or the second step fails.

Bad::

    from torch.amp import GradScaler


    def train(model, loader, optimizer, criterion):
        scaler = GradScaler("cuda")
        for x, y in loader:
            optimizer.zero_grad()
            scaler.scale(criterion(model(x), y)).backward()
            optimizer.step()
            scaler.update()

Bad::

    from torch.amp import GradScaler


    def train(model, loader, optimizer, criterion):
        scaler = GradScaler("cuda")
        for x, y in loader:
            optimizer.zero_grad()
            scaler.scale(criterion(model(x), y)).backward()
            scaler.step(optimizer)

Good::

    from torch.amp import GradScaler


    def train(model, loader, optimizer, criterion):
        scaler = GradScaler("cuda")
        for x, y in loader:
            optimizer.zero_grad()
            scaler.scale(criterion(model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.training import SCALERS, last_name, receiver
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C404",
    "scaler-incomplete",
    ERROR,
    mark("`{scaler}` scales the loss, but nothing calls `{scaler}.{missing}`"),
    mark("Call `{scaler}.step(optimizer)` instead of `optimizer.step()`, and `{scaler}.update()` after it"),
)


def look(source: Source) -> Iterator[Hit]:
    """Scalers of this file with a scaled backward, that go nowhere else and miss ``step`` or ``update``."""
    done: set[str] = set()
    for call in source.calls(".scale"):
        owner = receiver(call)
        above = source.parent(call)
        if owner is None or not (isinstance(above, ast.Attribute) and above.attr == "backward"):
            continue
        name = last_name(owner)
        if not name or name in done or not SCALERS & source.makers(owner) or _is_passed_on(source, name):
            continue
        done.add(name)
        for missing in ("step", "update"):
            if not any(last_name(receiver(each) or each) == name for each in source.calls(f".{missing}")):
                yield Hit(call, {"scaler": source.code(owner), "missing": missing})
                break


def _is_passed_on(source: Source, name: str) -> bool:
    """Whether another function or object gets the scaler: who then steps cannot be seen."""
    nodes: list[ast.Name | ast.Attribute] = [*source.nodes(ast.Name), *source.nodes(ast.Attribute)]
    return any(
        last_name(node) == name
        and isinstance(node.ctx, ast.Load)
        and not isinstance(source.parent(node), ast.Attribute)
        for node in nodes
    )

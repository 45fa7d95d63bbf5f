"""Finds ``.next()`` of an iterator, which Python 2 had.

The iterator of a loader has had no such method since torch 1.13: it raises an AttributeError.

Bad::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    batches = iter(DataLoader(CIFAR10("data")))
    images, labels = batches.next()

Good::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    batches = iter(DataLoader(CIFAR10("data")))
    images, labels = next(batches)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C511",
    "iter-next-method",
    ERROR,
    mark("iterators have no method `next()` in Python 3"),
    mark("Write `next({name})`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """The method of what is known to come from ``iter(…)``."""
    for call in source.calls(".next"):
        if call.args or call.keywords or not isinstance(call.func, ast.Attribute):
            continue
        iterator = call.func.value
        values = source.values(iterator)
        if values and all(_is_iter(source, value) for value in values):
            name = source.code(iterator)
            yield Hit(call, {"name": name}, (replace(source, call, f"next({name})"),), safe=True)


def _is_iter(source: Source, node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="iter") as function):
            return source.scope_at(function).find("iter") is None
    return False

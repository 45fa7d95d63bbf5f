"""Finds a lambda that has to reach workers.

Where workers are started afresh, as on Windows and macOS and since Python 3.14 on Linux, they get it pickled, and a
lambda or a function inside another cannot be.

Bad::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), num_workers=4, collate_fn=lambda items: items)

Good::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    def collate(items):
        return items

    train = DataLoader(CIFAR10("data"), num_workers=4, collate_fn=collate)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, WARNING, Hit, Rule
from torchport.check.rules.loading import loaders, workers
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C508",
    "local-function-for-workers",
    INFO,
    mark("workers that are started afresh cannot get this function: it cannot be pickled"),
    mark("Define it with `def` at the top of a module"),
)
_GIVEN = ("collate_fn", "worker_init_fn")


def look(source: Source) -> Iterator[Hit]:
    """Lambdas and inner functions that a loader with workers gets; a warning where it spawns them."""
    for call in loaders(source):
        if workers(call) == 0:
            continue
        spawns = constant(argument(call, "multiprocessing_context", 9)) in ("spawn", "forkserver")
        for name in _GIVEN:
            given = argument(call, name)
            if given is not None and _is_local(source, given):
                yield Hit(given, severity=WARNING if spawns else INFO)


def _is_local(source: Source, node: ast.expr) -> bool:
    values = source.values(node)
    if values:
        return all(isinstance(value, ast.Lambda) for value in values)
    found = source.scope_at(node).find(node.id) if isinstance(node, ast.Name) else None
    return found is not None and all(
        isinstance(way.node, ast.FunctionDef) and source.function(way.node) is not None for way in found[1]
    )

"""Finds batches from workers that are all kept.

Each tensor from a worker holds an open file of shared memory: a few thousand of them end in "Too many open files" or
fill ``/dev/shm``, which is small in a container.

Bad::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    kept = []
    for images, labels in DataLoader(CIFAR10("data"), num_workers=4):
        kept.append(labels)

Good::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    kept = []
    for images, labels in DataLoader(CIFAR10("data"), num_workers=4):
        kept.append(labels.clone())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.loading import LOADER, batches, loops_over_loaders, workers
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C509",
    "keep-worker-tensors",
    WARNING,
    mark("`{name}` comes from a worker, and each one that is kept holds shared memory and an open file"),
    mark('Keep a copy, `{name}.clone()`, or `torch.multiprocessing.set_sharing_strategy("file_system")`'),
)


def look(source: Source) -> Iterator[Hit]:
    """``kept.append(batch)`` where nothing else was assigned to that name."""
    if source.calls("torch.multiprocessing.set_sharing_strategy"):
        return
    for loop in loops_over_loaders(source):
        head = batches(source, loop)
        values = source.values(head) if head is not None else []
        if not any(isinstance(m, ast.Call) and source.name(m.func) == LOADER and workers(m) for m in values):
            continue
        for call in source.calls(".append"):
            match call.args:
                case [ast.Name() as given] if loop in source.loops(call) and _is_item(source, given, loop):
                    change = replace(source, given, f"{given.id}.clone()")
                    yield Hit(call, {"name": given.id}, (change,))


def _is_item(source: Source, name: ast.Name, loop: ast.For) -> bool:
    """Whether a name is nothing but an item of the loop's batches; not the number of ``enumerate``."""
    found = source.scope_at(name).find(name.id)
    if found is None or any(way.node is not loop for way in found[1]):
        return False
    counted = (
        isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "enumerate"
    )
    return not (counted and isinstance(loop.target, ast.Tuple) and getattr(loop.target.elts[0], "id", "") == name.id)

"""Finds workers that are started again for every epoch.

Without ``persistent_workers`` they end with each pass over the data: every epoch begins with their imports, a new copy
of the data set, and empty queues.

Bad::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, num_workers=4)
    for epoch in range(30):
        for images, labels in train:
            print(images.shape)

Good::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, num_workers=4, persistent_workers=True)
    for epoch in range(30):
        for images, labels in train:
            print(images.shape)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.loading import LOADER, batches, loops_over_loaders, workers
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C504",
    "workers-start-anew",
    INFO,
    mark("the workers of this loader are started again for every epoch"),
    mark("Add `persistent_workers=True`; the data set then keeps its state from epoch to epoch"),
    since=(1, 7),
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders made outside the loop over epochs and read in it."""
    seen: set[ast.Call] = set()
    for loop in loops_over_loaders(source):
        head = batches(source, loop)
        if head is None or not source.loops(loop):
            continue
        for made in source.values(head):
            if not isinstance(made, ast.Call) or made in seen or source.name(made.func) != LOADER:
                continue
            seen.add(made)
            wanted = (workers(made) or 0) > 0 and argument(made, "persistent_workers") is None
            if wanted and not is_open(made) and not source.loops(made):
                yield Hit(made, changes=(add_argument(source, made, "persistent_workers=True"),))

"""Finds options of workers for a loader that has none.

The loader raises a ValueError when it is made.

Bad::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, persistent_workers=True)

    test = DataLoader(CIFAR10("data"), num_workers=0, prefetch_factor=4)

Good::

    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, num_workers=4, persistent_workers=True)

    test = DataLoader(CIFAR10("data"), num_workers=0)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.loading import loaders, workers
from torchport.check.source import Source, constant, is_open
from torchport.text import mark

META = Rule(
    "C512",
    "worker-option-without-workers",
    ERROR,
    mark("`{name}` needs workers, and this loader has none: it raises a ValueError"),
    mark("Give it `num_workers`, or leave `{name}` out"),
    confidence=CERTAIN,
    since=(2, 0),
)


def look(source: Source) -> Iterator[Hit]:
    """Literal options only."""
    for call in loaders(source):
        if is_open(call) or workers(call) != 0:
            continue
        for given in call.keywords:
            value = constant(given.value)
            if (given.arg == "persistent_workers" and value is True) or (
                given.arg == "prefetch_factor" and isinstance(value, int)
            ):
                yield Hit(given, {"name": given.arg})

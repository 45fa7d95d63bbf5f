"""Finds a loader that is to shuffle a data set without an order.

An ``IterableDataset`` gives its items as they come: with ``shuffle=True`` or a sampler the loader raises a ValueError.

Bad::

    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class Lines(IterableDataset):
        def __iter__(self):
            yield from range(100)

    train = DataLoader(Lines(), batch_size=8, shuffle=True)

Good::

    import torch
    from torch.utils.data import DataLoader, IterableDataset

    class Lines(IterableDataset):
        def __iter__(self):
            yield from torch.randperm(100).tolist()

    train = DataLoader(Lines(), batch_size=8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.loading import dataset_of, is_iterable, loaders
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C510",
    "iterable-dataset-shuffle",
    ERROR,
    mark("`{name}` is an IterableDataset: with `{option}` this loader raises a ValueError"),
    mark("Leave it out, and mix the items in `__iter__`"),
    confidence=CERTAIN,
    since=(1, 2),
)


def look(source: Source) -> Iterator[Hit]:
    """Data sets of this file only."""
    for call in loaders(source):
        owner = dataset_of(source, call)
        if owner is None or not is_iterable(source, owner):
            continue
        sampler = argument(call, "sampler", 3)
        if constant(argument(call, "shuffle", 2)) is True:
            yield Hit(call, {"name": owner.name, "option": "shuffle=True"})
        elif isinstance(sampler, ast.Call):
            yield Hit(call, {"name": owner.name, "option": "sampler"})

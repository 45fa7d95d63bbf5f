"""Finds a loader with a sampler that is asked to shuffle as well.

The sampler decides the order; ``DataLoader`` raises ``ValueError: sampler option is mutually exclusive with shuffle``.

Bad::

    from torch.utils.data import DataLoader, DistributedSampler


    def loader(data):
        sampler = DistributedSampler(data)
        return DataLoader(data, batch_size=32, shuffle=True, sampler=sampler)

Good::

    from torch.utils.data import DataLoader, DistributedSampler


    def loader(data):
        sampler = DistributedSampler(data)
        return DataLoader(data, batch_size=32, sampler=sampler)

Good::

    from torch.utils.data import DataLoader, DistributedSampler


    def loader(data, distributed):
        sampler = DistributedSampler(data) if distributed else None
        return DataLoader(data, batch_size=32, shuffle=sampler is None, sampler=sampler)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C304",
    "sampler-and-shuffle",
    ERROR,
    mark("The loader has a sampler and `shuffle=True`: DataLoader raises ValueError"),
    mark("Leave out `shuffle=True`; the sampler shuffles"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders that name ``shuffle=True`` and a sampler that cannot be None."""
    for call in source.calls("torch.utils.data.DataLoader"):
        shuffle = next((each for each in call.keywords if each.arg == "shuffle"), None)
        if shuffle is None or constant(shuffle.value) is not True:
            continue
        given = [argument(call, "sampler", 3), argument(call, "batch_sampler", 4)]
        if any(each is not None and _is_sampler(source, each) for each in given):
            yield Hit(shuffle.value, {}, (changes.remove_argument(source, call, shuffle),), safe=True)


def _is_sampler(source: Source, node: ast.expr) -> bool:
    """True only where everything that the argument may be is an object that a call makes."""
    if isinstance(node, ast.Name):
        found = source.scope_at(node).find(node.id)
        if found is None or any(way.value is None for way in found[1]):
            return False
    values = source.values(node)
    return bool(values) and all(
        isinstance(each, ast.Call) and source.name(each.func).startswith("torch.utils.data.") for each in values
    )

"""Finds a loader with a ``batch_sampler`` and options that it decides.

It already says which items make a batch: with ``batch_size``, ``shuffle``, ``sampler`` or ``drop_last`` beside it the
loader raises a ValueError.

Bad::

    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
    from torchvision.datasets import CIFAR10

    data = CIFAR10("data")
    sampler = BatchSampler(SequentialSampler(data), 8, False)
    train = DataLoader(data, shuffle=True, batch_sampler=sampler)

Good::

    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler
    from torchvision.datasets import CIFAR10

    data = CIFAR10("data")
    sampler = BatchSampler(SequentialSampler(data), 8, False)
    train = DataLoader(data, batch_sampler=sampler)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.loading import loaders
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C513",
    "batch-sampler-conflict",
    ERROR,
    mark("`{name}` and `batch_sampler` exclude each other: this loader raises a ValueError"),
    mark("Leave `{name}` out, or give it to the sampler"),
    confidence=CERTAIN,
)
_DEFAULTS = {"batch_size": 1, "shuffle": False, "sampler": None, "drop_last": False}


def look(source: Source) -> Iterator[Hit]:
    """Literal options that differ from what is there without them."""
    for call in loaders(source):
        sampler = argument(call, "batch_sampler", 4)
        if not isinstance(sampler, (ast.Name, ast.Call, ast.Attribute)):
            continue
        if isinstance(sampler, ast.Name) and not source.makers(sampler):
            continue
        for given in call.keywords:
            known = given.arg in _DEFAULTS and isinstance(given.value, ast.Constant)
            if known and constant(given.value) != _DEFAULTS[given.arg or ""]:
                yield Hit(given, {"name": given.arg})
                break

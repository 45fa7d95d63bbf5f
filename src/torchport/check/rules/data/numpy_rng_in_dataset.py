"""Finds random numbers of NumPy in a data set whose workers all draw the same.

Before torch 1.9 each forked worker goes on from the same state of NumPy's generator: four workers make the same
"random" augmentation four times.

Bad::

    import numpy as np
    from torch.utils.data import DataLoader, Dataset

    class Noise(Dataset):
        def __getitem__(self, index):
            return np.random.randn(3)

        def __len__(self):
            return 100

    train = DataLoader(Noise(), batch_size=8, num_workers=4)

Good::

    import numpy as np
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Noise(Dataset):
        def __getitem__(self, index):
            return np.random.randn(3)

        def __len__(self):
            return 100

    def seed_worker(number):
        np.random.seed(torch.initial_seed() % 2**32)

    train = DataLoader(Noise(), batch_size=8, num_workers=4, worker_init_fn=seed_worker)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.loading import dataset_of, inside, loaders, methods, workers
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C506",
    "numpy-rng-in-dataset",
    WARNING,
    mark("all workers of this loader draw the same numbers: `{code}` goes on from one state"),
    mark("Seed NumPy in a `worker_init_fn`, from `torch.initial_seed()`"),
    until=(1, 9),
)


def look(source: Source) -> Iterator[Hit]:
    """Calls of ``numpy.random`` in the items of a loader with workers and without ``worker_init_fn``."""
    drawn = [call for call in source.nodes(ast.Call) if source.name(call.func).startswith("numpy.random.")]
    for call in loaders(source) if drawn else ():
        owner = dataset_of(source, call)
        if owner is None or is_open(call) or workers(call) == 0 or argument(call, "worker_init_fn") is not None:
            continue
        for getter in methods(owner, "__getitem__"):
            for draw in drawn:
                if inside(source, draw, getter) and not source.name(draw.func).endswith((".seed", ".default_rng")):
                    yield Hit(draw, {"code": source.code(draw.func)})

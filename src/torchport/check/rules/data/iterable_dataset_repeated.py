"""Finds an IterableDataset that every worker reads from its beginning.

Each worker has a copy of it: with four of them each item comes four times in an epoch, without a word.

Bad::

    from torch.utils.data import DataLoader, IterableDataset

    class Lines(IterableDataset):
        def __iter__(self):
            with open("train.txt") as file:
                yield from file

    train = DataLoader(Lines(), batch_size=8, num_workers=4)

Good::

    from itertools import islice

    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Lines(IterableDataset):
        def __iter__(self):
            worker = get_worker_info()
            with open("train.txt") as file:
                yield from islice(file, worker.id, None, worker.num_workers) if worker else file

    train = DataLoader(Lines(), batch_size=8, num_workers=4)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.loading import dataset_of, is_iterable, loaders, methods, workers
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C514",
    "iterable-dataset-repeated",
    ERROR,
    mark("each of the {count} workers gives all items of `{name}`: every item comes {count} times"),
    mark("Give each worker its share in `__iter__`, with `torch.utils.data.get_worker_info()`"),
    since=(1, 2),
)


def look(source: Source) -> Iterator[Hit]:
    """Several workers, a class of this file that says nothing of them, and nothing that sets them up."""
    if "worker_info" in source.text:
        return
    for call in loaders(source):
        owner = dataset_of(source, call)
        count = workers(call) or 0
        if owner is None or count < 2 or is_open(call) or argument(call, "worker_init_fn") is not None:
            continue
        says = source.code(owner).lower()
        if is_iterable(source, owner) and methods(owner, "__iter__") and not any(w in says for w in ("worker", "rand")):
            yield Hit(call, {"name": owner.name, "count": count})

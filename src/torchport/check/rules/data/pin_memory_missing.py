"""Finds a loader whose batches go to the GPU from memory that is not pinned.

Such a copy goes through another buffer, and the program waits for it even with ``non_blocking=True``.

Bad::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, num_workers=4)
    for images, labels in train:
        images = images.to("cuda", non_blocking=True)

Good::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    train = DataLoader(CIFAR10("data"), batch_size=64, num_workers=4, pin_memory=True)
    for images, labels in train:
        images = images.to("cuda", non_blocking=True)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument, replace
from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.loading import dataset_of, loaders, may_give_cuda, uses_cuda
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C502",
    "pin-memory-missing",
    INFO,
    mark("this loader's batches are not in pinned memory: each copy to the GPU waits"),
    mark("Add `pin_memory=True`, unless the data set gives CUDA tensors, and move with `non_blocking=True`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders of a file that moves something to a GPU; silent where a data set or a collate function may do so."""
    if not uses_cuda(source) or not source.calls(".to", ".cuda") or may_give_cuda(source):
        return
    for call in loaders(source):
        given = argument(call, "pin_memory", 7)
        if is_open(call) or (given is not None and constant(given) is not False):
            continue
        change = add_argument(source, call, "pin_memory=True") if given is None else replace(source, given, "True")
        known = _is_known(source, call) and argument(call, "collate_fn", 6) is None
        yield Hit(call, changes=(change,) if known else ())


def _is_known(source: Source, call: ast.Call) -> bool:
    """Whether the data set is a class of this file or of torchvision: items of another may be anywhere."""
    given = argument(call, "dataset", 0)
    if given is None:
        return False
    makers = source.makers(given)
    return dataset_of(source, call) is not None or any(name.startswith("torchvision.datasets.") for name in makers)

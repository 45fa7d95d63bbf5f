"""Finds ``pin_memory=True`` for a data set that gives CUDA tensors.

Only memory of the CPU can be pinned: the first batch raises "cannot pin 'torch.cuda.FloatTensor'".

Bad::

    import torch
    from torch.utils.data import DataLoader, Dataset

    class Points(Dataset):
        def __getitem__(self, index):
            return torch.tensor([float(index)]).cuda()

        def __len__(self):
            return 100

    train = DataLoader(Points(), batch_size=8, pin_memory=True)

Good::

    import torch
    from torch.utils.data import DataLoader, Dataset

    class Points(Dataset):
        def __getitem__(self, index):
            return torch.tensor([float(index)]).cuda()

        def __len__(self):
            return 100

    train = DataLoader(Points(), batch_size=8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_argument
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.loading import dataset_of, inside, loaders, methods, puts_on_gpu
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C503",
    "pin-cuda-tensors",
    ERROR,
    mark("the items of `{name}` are CUDA tensors, which cannot be pinned"),
    mark("Leave `pin_memory` out; better, give CPU tensors and move each batch"),
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders of a class in this file whose ``__getitem__`` gives back what it put on the GPU."""
    for call in loaders(source):
        pinned = next((each for each in call.keywords if each.arg == "pin_memory"), None)
        owner = dataset_of(source, call)
        if pinned is None or owner is None or constant(pinned.value) is not True:
            continue
        gives = [
            each
            for each in source.nodes(ast.Return)
            for getter in methods(owner, "__getitem__")
            if inside(source, each, getter)
        ]
        if any(_gives_cuda(source, each) for each in gives):
            yield Hit(pinned, {"name": owner.name}, (remove_argument(source, call, pinned),), safe=True)


def _gives_cuda(source: Source, given: ast.Return) -> bool:
    """Whether something that a function gives back was put on the GPU just there."""
    values = given.value.elts if isinstance(given.value, ast.Tuple) else [given.value] if given.value else []
    return any(
        isinstance(made, ast.Call) and puts_on_gpu(source, made) for value in values for made in source.values(value)
    )

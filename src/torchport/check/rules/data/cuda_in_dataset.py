"""Finds a data set or a collate function that puts items on the GPU.

Items are made in worker processes, which cannot use CUDA after a fork ("Cannot re-initialize CUDA in forked
subprocess"); and one copy per item is far slower than one per batch.

Bad::

    import torch
    from torch.utils.data import DataLoader, Dataset

    class Points(Dataset):
        def __getitem__(self, index):
            return torch.tensor([float(index)]).cuda()

        def __len__(self):
            return 100

    train = DataLoader(Points(), batch_size=8, num_workers=2)

Good::

    import torch
    from torch.utils.data import DataLoader, Dataset

    class Points(Dataset):
        def __getitem__(self, index):
            return torch.tensor([float(index)])

        def __len__(self):
            return 100

    for batch in DataLoader(Points(), batch_size=8, num_workers=2):
        batch = batch.cuda()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.names import Function
from torchport.check.rule import ERROR, LIKELY, WARNING, Hit, Rule
from torchport.check.rules.loading import dataset_classes, inside, loaders, puts_on_gpu, workers
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C505",
    "cuda-in-dataset",
    WARNING,
    mark(
        "`{code}` makes a data set of CUDA tensors: a forked worker cannot use CUDA, and each item is a copy of its own"
    ),
    mark("Give CPU tensors, and move the batch in the training loop"),
)


def look(source: Source) -> Iterator[Hit]:
    """What a data set and the ``collate_fn`` do; an error where workers are asked for."""
    places: list[ast.AST] = [*dataset_classes(source), *_collate_functions(source)]
    if not places:
        return
    forked = any((workers(call) or 0) > 0 for call in loaders(source))
    for call in source.nodes(ast.Call):
        if puts_on_gpu(source, call) and any(inside(source, call, place) for place in places):
            yield Hit(call, {"code": source.code(call)}, severity=ERROR if forked else WARNING, confidence=LIKELY)


def _collate_functions(source: Source) -> list[Function]:
    """The functions of this file that make batches for a loader."""
    names = set()
    for call in loaders(source):
        given = argument(call, "collate_fn", 6)
        if isinstance(given, ast.Name):
            names.add(given.id)
    return [each for each in source.nodes(ast.FunctionDef) if each.name in names]

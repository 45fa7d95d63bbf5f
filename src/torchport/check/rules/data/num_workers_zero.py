"""Finds a loader without workers, whose batches the training process makes itself.

The GPU waits while files are read and pictures are decoded: often most of the time.

Bad::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    train = DataLoader(ImageFolder("train"), batch_size=64, shuffle=True)
    for images, labels in train:
        images = images.to("cuda")

Good::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    train = DataLoader(ImageFolder("train"), batch_size=64, shuffle=True, num_workers=4)
    for images, labels in train:
        images = images.to("cuda")

Good::

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    train = DataLoader(TensorDataset(torch.randn(100, 4)), batch_size=64)  # it is in memory already
    for (features,) in train:
        features = features.to("cuda")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument, replace
from torchport.check.rule import INFO, LIKELY, POSSIBLE, WARNING, Hit, Rule
from torchport.check.rules.loading import dataset_of, inside, loaders, may_give_cuda, methods, uses_cuda, workers
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C501",
    "num-workers-zero",
    WARNING,
    mark("this loader has no workers: the GPU waits while the training process makes each batch"),
    mark("Give it `num_workers`, the CPU cores divided by the GPUs to begin with, and measure"),
)
_READERS = frozenset({"PIL.Image.open", "cv2.imread", "numpy.load", "torch.load", "torchaudio.load", "open"})
_PICTURES = frozenset(
    f"torchvision.datasets.{name}" for name in "ImageFolder ImageNet CIFAR10 CIFAR100 CocoDetection CelebA SVHN".split()
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders of a file that uses a GPU; more surely where items are read or decoded one by one."""
    if not uses_cuda(source) or may_give_cuda(source):
        return
    for call in loaders(source):
        if is_open(call) or workers(call) != 0 or _in_memory(source, call):
            continue
        given = argument(call, "num_workers", 5)
        change = add_argument(source, call, "num_workers=4") if given is None else replace(source, given, "4")
        if _is_slow(source, call):
            yield Hit(call, changes=(change,), confidence=LIKELY)
        else:
            yield Hit(call, changes=(change,), severity=INFO, confidence=POSSIBLE)


def _in_memory(source: Source, call: ast.Call) -> bool:
    given = argument(call, "dataset", 0)
    values = source.values(given) if given is not None else []
    return any(
        isinstance(value, (ast.List, ast.ListComp, ast.Tuple))
        or (isinstance(value, ast.Call) and source.name(value.func) == "torch.utils.data.TensorDataset")
        for value in values
    )


def _is_slow(source: Source, call: ast.Call) -> bool:
    """Whether each item is read from a file."""
    given = argument(call, "dataset", 0)
    if given is not None and source.makers(given) & _PICTURES:
        return True
    owner = dataset_of(source, call)
    getters = methods(owner, "__getitem__") if owner is not None else []
    for inner in source.nodes(ast.Call) if getters else ():
        name = source.name(inner.func) or (inner.func.id if isinstance(inner.func, ast.Name) else "")
        if name in _READERS and any(inside(source, inner, getter) for getter in getters):
            return True
    return False

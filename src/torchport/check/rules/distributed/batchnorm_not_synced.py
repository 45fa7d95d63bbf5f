"""Finds a model with batch normalisation under DDP whose ranks each use their own statistics.

Each GPU normalises by its own part of the batch. With few samples per GPU the statistics become noisy, and those of
the first rank alone are saved.

Bad::

    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x):
            return self.norm(self.conv(x))


    def build(rank):
        return DDP(Net().to(rank), device_ids=[rank])

Good::

    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x):
            return self.norm(self.conv(x))


    def build(rank):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(Net())
        return DDP(model.to(rank), device_ids=[rank])
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.rules.layers import class_named
from torchport.check.rules.ranks import DDP
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C310",
    "batchnorm-not-synced",
    INFO,
    mark("`{layer}` under DDP uses the statistics of each GPU's own samples"),
    mark("With few samples per GPU, wrap `torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)` instead"),
    confidence=POSSIBLE,
)
_NORMS = tuple(f"torch.nn.BatchNorm{n}d" for n in (1, 2, 3))


def look(source: Source) -> Iterator[Hit]:
    """DDP calls on an instance of a class of this file that makes BatchNorm layers."""
    if not source.calls(DDP) or "SyncBatchNorm" in code_of(source) or "sync_bn" in code_of(source):
        return
    norms = source.calls(*_NORMS)
    for call in source.calls(DDP) if norms else ():
        made = source.makers(call.args[0]) if call.args else frozenset()
        owners = [owner for owner in (class_named(source, name) for name in made) if owner is not None]
        inside = [norm for norm in norms if source.method_class(norm) in owners]
        if inside or made & set(_NORMS):
            layer = source.code(inside[0]) if inside else "BatchNorm"
            yield Hit(call, {"layer": layer})

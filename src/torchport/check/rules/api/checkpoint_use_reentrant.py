"""Finds activation checkpoints that do not say which of two ways they mean.

The default is going to change: torch warns at each call, and says that a later release raises an error.

Bad::

    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    layer = nn.Linear(4, 4)
    y = checkpoint(layer, torch.randn(2, 4, requires_grad=True))

Good::

    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    layer = nn.Linear(4, 4)
    y = checkpoint(layer, torch.randn(2, 4, requires_grad=True), use_reentrant=True)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C941",
    "checkpoint-use-reentrant",
    INFO,
    mark("this checkpoint does not say `use_reentrant`, whose default is going to change"),
    mark("`use_reentrant=False` is advised; `True` keeps what it does now"),
    confidence=CERTAIN,
    since=(2, 1),
)
_NAMES = ("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential")


def look(source: Source) -> Iterator[Hit]:
    """Calls without the keyword and without ``**kwargs``, which may hold it."""
    for call in source.calls(*_NAMES):
        if argument(call, "use_reentrant") is None and all(each.arg for each in call.keywords):
            yield Hit(call, changes=(add_argument(source, call, "use_reentrant=True"),), safe=True)

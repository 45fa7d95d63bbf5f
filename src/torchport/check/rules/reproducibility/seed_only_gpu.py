"""Finds a seed for the GPU alone.

Weights are drawn on the CPU, and so is the order of the data: without ``torch.manual_seed`` runs differ all the same.

Bad::

    import torch
    from torch import nn

    torch.cuda.manual_seed(3)
    model = nn.Linear(4, 2).cuda()

Good::

    import torch
    from torch import nn

    torch.manual_seed(3)
    model = nn.Linear(4, 2).cuda()
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.layers import spelled
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C706",
    "seed-only-gpu",
    WARNING,
    mark("only the GPU gets a seed: weights and the order of the data are drawn on the CPU"),
    mark("Use `torch.manual_seed(…)`, which seeds the CPU and every GPU"),
)
_ON_GPU = ("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
_ALL = ("torch.manual_seed", "torch.random.manual_seed", "torch.seed", "pytorch_lightning.seed_everything")
_OTHERS = ("lightning.seed_everything", "accelerate.utils.set_seed", "transformers.set_seed")


def look(source: Source) -> Iterator[Hit]:
    """In files where nothing seeds the rest."""
    if source.calls(*_ALL, *_OTHERS):
        return
    for call in source.calls(*_ON_GPU):
        text = spelled(source, "torch.manual_seed")
        yield Hit(call, changes=(replace(source, call.func, text),) if text else ())
        break

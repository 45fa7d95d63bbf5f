"""Finds DistributedDataParallel without ``device_ids`` around a model that is on one GPU.

It works, but the inputs then have to be on that GPU already: only with ``device_ids`` does DDP move them there. The
argument also makes a model that ended up on several devices fail at once.

Bad::

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(local_rank):
        torch.cuda.set_device(local_rank)
        model = nn.Linear(8, 2).cuda(local_rank)
        return DDP(model)

Good::

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(local_rank):
        torch.cuda.set_device(local_rank)
        model = nn.Linear(8, 2).cuda(local_rank)
        return DDP(model, device_ids=[local_rank])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.ranks import DDP, is_rank
from torchport.check.rules.training import always_before
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C307",
    "ddp-device-ids",
    INFO,
    mark("`{code}` does not say on which GPU the model is, so it moves no inputs there"),
    mark("Add `device_ids=[{rank}]`"),
)


def look(source: Source) -> Iterator[Hit]:
    """DDP calls without the argument, where the same function sets the device by a name."""
    for call in source.calls(DDP):
        if (
            is_open(call)
            or any(argument(call, name) is not None for name in ("device_mesh", "device_ids"))
            or call.args[1:]
        ):
            continue
        for chosen in source.calls("torch.cuda.set_device", ".cuda"):
            given = chosen.args[0] if chosen.args else None
            if not always_before(source, chosen, call):
                continue
            if isinstance(given, (ast.Name, ast.Attribute)) and is_rank(given):
                rank = source.code(given)
                change = changes.add_argument(source, call, f"device_ids=[{rank}]")
                yield Hit(call, {"code": source.code(call), "rank": rank}, (change,))
                break

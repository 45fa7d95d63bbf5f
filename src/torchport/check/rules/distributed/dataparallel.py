"""Finds ``nn.DataParallel``.

One process drives all GPUs: at each step it copies the model to every one of them and gathers all outputs on the
first, which fills up before the others. ``DistributedDataParallel`` runs one process per GPU and is faster even on
one machine; DataParallel gets no new features.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    model = nn.DataParallel(model)

Good::

    import os

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = nn.Linear(8, 2).to(local_rank)
    model = DistributedDataParallel(model, device_ids=[local_rank])
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C301",
    "dataparallel",
    WARNING,
    mark("`{code}` copies the model to every GPU at each step, and all of them wait for one process"),
    mark("Use torch.nn.parallel.DistributedDataParallel with one process per GPU, started by torchrun"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Calls of ``torch.nn.DataParallel``, and of the function that does the same."""
    for call in source.calls("torch.nn.DataParallel", "torch.nn.parallel.data_parallel"):
        yield Hit(call, {"code": source.code(call)})

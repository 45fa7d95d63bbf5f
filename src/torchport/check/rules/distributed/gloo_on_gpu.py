"""Finds a training on GPUs whose ranks talk through Gloo.

Gloo takes every gradient through the memory of the CPU. NCCL goes from GPU to GPU and is many times faster.

Bad::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        return DDP(model.to(rank), device_ids=[rank])

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        return DDP(model.to(rank), device_ids=[rank])

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        return DDP(model)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.ranks import DDP, INIT
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C326",
    "gloo-on-gpu",
    WARNING,
    mark("Gloo takes the gradients of GPUs through the memory of the CPU"),
    mark('Use "nccl" on GPUs, "gloo" on CPUs'),
)


def look(source: Source) -> Iterator[Hit]:
    """The one group of a file, if it is Gloo's by its text, where the file gives DDP or the process a GPU."""
    groups = source.calls(INIT)
    if len(groups) != 1:
        return
    backend = argument(groups[0], "backend", 0)
    on_gpu = source.calls("torch.cuda.set_device") or any(
        isinstance(argument(call, "device_ids", 1), ast.List) for call in source.calls(DDP)
    )
    if backend is not None and constant(backend) == "gloo" and on_gpu and source.calls(DDP):
        quote = source.code(backend)[-1]
        yield Hit(backend, {}, ((*source.span(backend), f"{quote}nccl{quote}"),))

"""Finds a distributed run in which every rank uses the same GPU, by its number.

``"cuda:0"`` and ``set_device(0)`` name one GPU whatever the rank. The others stay idle, and NCCL stops with
"Duplicate GPU detected".

Bad::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        device = torch.device("cuda:0")
        return DDP(model.to(device))

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def wrap(model):
        return DDP(model, device_ids=[0])

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        device = torch.device(f"cuda:{rank}")
        return DDP(model.to(device))

Good::

    import torch
    import torch.distributed as dist


    def worker(args):
        if args.distributed:
            dist.init_process_group("nccl")
            device = torch.device("cuda", args.local_rank)
        else:
            device = torch.device("cuda:0")
        return device
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.ranks import DDP, INIT, home, is_guarded
from torchport.check.rules.training import conditions
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C308",
    "ddp-same-gpu",
    ERROR,
    mark("`{code}` is the same GPU in every rank"),
    mark("Take the GPU of the local rank: `torch.device(f'cuda:{{local_rank}}')`"),
)
_NUMBERED = re.compile(r"cuda:\d+$")


def look(source: Source) -> Iterator[Hit]:
    """Numbered GPUs in a function that joins a group or wraps a model, wherever that happens as well."""
    starts = source.calls(INIT, DDP)
    if not starts or "CUDA_VISIBLE_DEVICES" in code_of(source):
        return
    for call in source.calls(DDP):
        match argument(call, "device_ids", 1):
            case ast.List(elts=[ast.Constant(value=int())]) as given:
                yield Hit(given, {"code": source.code(call)})
    for call in source.calls("torch.device", "torch.cuda.set_device", ".cuda", ".to"):
        if not _is_numbered(source, call) or is_guarded(source, call):
            continue
        for start in starts:
            same = home(source, start) is home(source, call)
            if same and conditions(source, call) <= conditions(source, start):
                yield Hit(call, {"code": source.code(call)})
                break


def _is_numbered(source: Source, call: ast.Call) -> bool:
    given = call.args[0] if call.args else None
    if isinstance(given, ast.IfExp):
        given = given.body
    value = constant(given)
    if isinstance(value, str):
        return bool(_NUMBERED.match(value))
    numbered = source.name(call.func) == "torch.cuda.set_device" or source.code(call.func).endswith(".cuda")
    return numbered and isinstance(value, int) and not isinstance(value, bool)

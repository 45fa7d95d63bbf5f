"""Finds a process group of GPUs whose ranks all work on the first one.

``.cuda()`` and ``"cuda"`` mean the current device, which is GPU 0 in every process until ``torch.cuda.set_device``
says otherwise. NCCL then stops with "Duplicate GPU detected", or one GPU holds the memory of all ranks.

Bad::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        model = DDP(model.cuda())
        return model

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        model = DDP(model.cuda())
        return model

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        return DDP(model.to(rank), device_ids=[rank])
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.rules.ranks import INIT, home, run_by_every_rank
from torchport.check.rules.training import conditions
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C306",
    "ddp-no-set-device",
    ERROR,
    mark("No rank chooses its GPU: `{code}` means GPU 0 in all of them"),
    mark("Call `torch.cuda.set_device({rank})` in each process before anything else uses CUDA"),
)
_CHOOSES = ("set_device", "CUDA_VISIBLE_DEVICES", "cuda.device(", "HIP_VISIBLE_DEVICES", "device_id=")
_ON_GPU = re.compile(r"(torch\.cuda\.is_available\(\)|(\w+\.)*(use_)?(cuda|gpu))$", re.IGNORECASE)


def look(source: Source) -> Iterator[Hit]:
    """Groups that may be NCCL's, in files that move to ``cuda`` without a number and never set a device."""
    groups = [call for call in source.calls(INIT) if constant(argument(call, "backend", 0)) not in ("gloo", "mpi")]
    if not groups or any(word in code_of(source) for word in _CHOOSES):
        return
    functions = run_by_every_rank(source)
    for call in source.calls(".cuda", ".to", "torch.device"):
        group = groups[0]
        if not _means_current(source, call) or home(source, call) not in functions:
            continue
        same = home(source, call) is home(source, group)
        own = conditions(source, call) - (conditions(source, group) if same else set())
        if not all(first and _asks_for_gpu(source, test) for test, first in own):
            continue
        rank = argument(group, "rank")
        fix: tuple[Change, ...] = ()
        statement = source.statement(group)
        alone = isinstance(statement, ast.Expr) and statement.value is group
        if isinstance(rank, ast.Name) and alone and constant(argument(group, "backend", 0)) == "nccl":
            fix = (changes.before(source, statement, f"torch.cuda.set_device({rank.id})"),)
        name = source.code(rank) if rank is not None else "local_rank"
        yield Hit(group, {"code": source.code(call), "rank": name}, fix, needs=("torch",))
        return


def _asks_for_gpu(source: Source, test: ast.AST) -> bool:
    """Whether a branch asks for a GPU and for nothing that tells one kind of run from another."""
    return isinstance(test, ast.If) and bool(_ON_GPU.match(source.code(test.test)))


def _means_current(source: Source, call: ast.Call) -> bool:
    """``.cuda()``, ``.to("cuda")`` and ``torch.device("cuda")``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return not call.args and not call.keywords
    given = call.args[0] if len(call.args) == 1 else None
    return bool(constant(given.body if isinstance(given, ast.IfExp) else given) == "cuda")

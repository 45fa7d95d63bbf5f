"""Finds a report that every rank prints.

With eight GPUs each line comes eight times, mixed up with the others.

Bad::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, rank):
        dist.init_process_group("nccl", rank=rank)
        model = DDP(model.to(rank), device_ids=[rank])
        for step, x in enumerate(loader):
            loss = model(x).mean()
            loss.backward()
            print("step", step, loss.item())

Good::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, rank):
        dist.init_process_group("nccl", rank=rank)
        model = DDP(model.to(rank), device_ids=[rank])
        for step, x in enumerate(loader):
            loss = model(x).mean()
            loss.backward()
            if rank == 0:
                print("step", step, loss.item())

Good::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, rank):
        dist.init_process_group("nccl", rank=rank)
        model = DDP(model.to(rank), device_ids=[rank])
        for step, x in enumerate(loader):
            print(f"[{rank}] step {step}", model(x).mean().item())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.ranks import INIT, home, is_guarded, mentions_rank, run_by_every_rank
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C315",
    "print-all-ranks",
    INFO,
    mark("Every rank prints `{code}`: each line comes once per GPU"),
    mark("Print on the first rank only"),
)


def look(source: Source) -> Iterator[Hit]:
    """The first ``print`` in a loop of each function that every rank runs, with no test and no word of the rank."""
    functions = run_by_every_rank(source) if source.calls(INIT) else []
    if not functions or any(word in code_of(source) for word in ("builtins", "__builtin__", "force=True")):
        return
    done: set[ast.AST] = set()
    for call in source.nodes(ast.Call):
        if not isinstance(call.func, ast.Name) or call.func.id != "print" or not source.loops(call):
            continue
        here = home(source, call)
        if here not in functions or here in done or source.scope_at(call).find("print") is not None:
            continue
        if not is_guarded(source, call) and not mentions_rank(call):
            done.add(here)
            yield Hit(call, {"code": source.code(call)})

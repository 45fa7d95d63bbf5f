"""Finds a program that joins a process group and never leaves it.

Since torch 2.4 that ends with a warning; a rank that is slower than the others can then hang or fail at the very end.

Bad::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model, train):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        model = DDP(model.to(rank), device_ids=[rank])
        train(model)

Good::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def worker(rank, world_size, model, train):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        model = DDP(model.to(rank), device_ids=[rank])
        train(model)
        dist.destroy_process_group()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import INFO, Change, Hit, Rule
from torchport.check.rules.ranks import DDP, INIT, home
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C319",
    "no-destroy-process-group",
    INFO,
    mark("Nothing ends the process group that `{code}` starts"),
    mark("Call `torch.distributed.destroy_process_group()` at the end"),
)


def look(source: Source) -> Iterator[Hit]:
    """Functions that join a group and wrap a model, in a file that never says ``destroy_process_group``."""
    if not source.calls(INIT) or "destroy_process_group" in code_of(source):
        return
    wraps = {home(source, call) for call in source.calls(DDP)}
    for call in source.calls(INIT):
        here = home(source, call)
        if here in wraps:
            yield Hit(call, {"code": source.code(call)}, _fix(source, call, here))


def _fix(source: Source, call: ast.Call, here: ast.AST) -> tuple[Change, ...]:
    """A last line of a function that gives nothing back, where the group is joined in any case."""
    statement = source.statement(call)
    if not isinstance(here, ast.FunctionDef) or source.parent(statement) is not here:
        return ()
    if any(source.function(each) is here for each in source.nodes(ast.Return)):
        return ()
    module = source.code(call.func).rpartition(".")[0]
    if not module or here.body[-1].lineno == here.lineno:
        return ()
    return (changes.after(source, here.body[-1], f"{module}.destroy_process_group()"),)

"""Finds a DDP model that only the first rank calls.

Before a forward pass DDP sends the buffers of the first rank to all others, and in a training pass it expects
gradients from all. A validation under ``if rank == 0`` waits for ranks that do not take part.

Bad::

    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP


    def run(model, batch, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        if rank == 0:
            with torch.no_grad():
                print(model(batch).mean().item())

Good::

    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP


    def run(model, batch, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        if rank == 0:
            with torch.no_grad():
                print(model.module(batch).mean().item())

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def validate(net, loader):
        for x in loader:
            net(x)


    def run(model, loader, rank):
        ddp_model = DDP(model.to(rank), device_ids=[rank])
        if rank == 0:
            validate(ddp_model, loader)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.ranks import first_rank_branch
from torchport.check.rules.training import called_functions
from torchport.check.rules.wrapped import is_wrapped, wrapped_names
from torchport.check.source import Source, parameters
from torchport.text import mark

META = Rule(
    "C312",
    "ddp-forward-in-rank-branch",
    ERROR,
    mark("Only the first rank calls `{code}`: DDP makes it wait for the others"),
    mark("Call `{name}.module` there, or let all ranks take part"),
)


def look(source: Source) -> Iterator[Hit]:
    """Behind a test of the rank: calls of a wrapper, and of functions of this file that call what they are given."""
    names = wrapped_names(source)
    for call in source.nodes(ast.Call) if names else ():
        if first_rank_branch(source, call) is None:
            continue
        passed = [each for place, each in enumerate(call.args) if _calls_parameter(source, call, place)]
        for model in [call.func, *passed]:
            if is_wrapped(source, model, names):
                end = source.span(model)[1]
                words = {"code": source.code(call), "name": source.code(model)}
                yield Hit(call, words, ((end, end, ".module"),))
                break


def _calls_parameter(source: Source, call: ast.Call, place: int) -> bool:
    """Whether the function of this file that is called calls its parameter at that place."""
    wanted = call.func.id if isinstance(call.func, ast.Name) else ""
    function = next((each for each in called_functions(source, call) if each.name == wanted), None)
    given = parameters(function) if function is not None else []
    if function is None or place >= len(given):
        return False
    name = given[place].arg
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
        for each in ast.walk(function)
    )

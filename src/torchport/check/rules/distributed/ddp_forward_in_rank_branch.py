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
from torchport.check.rules.ranks import DDP, first_rank_branch, home
from torchport.check.rules.training import always_before, called_functions
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
    """Behind a test of the rank: calls of what DDP made before, and of functions that call what they are given."""
    wraps = source.calls(DDP)
    for call in source.nodes(ast.Call) if wraps else ():
        branch = first_rank_branch(source, call)
        if branch is None:
            continue
        name = _wrapped(source, call.func, wraps)
        if name:
            end = source.span(call.func)[1]
            yield Hit(call, {"code": source.code(call), "name": name}, ((end, end, ".module"),))
            continue
        for place, given in enumerate(call.args):
            name = _wrapped(source, given, wraps)
            if name and isinstance(call.func, ast.Name) and _calls_parameter(source, call, place):
                end = source.span(given)[1]
                yield Hit(call, {"code": source.code(call), "name": name}, ((end, end, ".module"),))
                break


def _wrapped(source: Source, node: ast.expr, wraps: list[ast.Call]) -> str:
    """The name of a wrapped model, where nothing else is known to have been given that name since."""
    if not isinstance(node, ast.Name):
        return ""
    given = [each for each in wraps if each in source.values(node) and home(source, each) is home(source, node)]
    if not given or not always_before(source, given[-1], node):
        return ""
    found = source.scope_at(node).find(node.id)
    latest = max((way.node.lineno for way in found[1] if hasattr(way.node, "lineno")), default=0) if found else 0
    return node.id if latest <= given[-1].lineno else ""


def _calls_parameter(source: Source, call: ast.Call, place: int) -> bool:
    """Whether the function of this file that is called calls its parameter at that place."""
    assert isinstance(call.func, ast.Name)
    wanted = call.func.id
    function = next((each for each in called_functions(source, call) if each.name == wanted), None)
    given = parameters(function) if function is not None else []
    if function is None or place >= len(given):
        return False
    name = given[place].arg
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == name
        for each in ast.walk(function)
    )

"""Finds a collective call that only the first rank reaches.

``barrier``, ``all_reduce``, ``broadcast`` and their like wait until every rank of the group has called them. Under
``if rank == 0`` the first rank waits for the others for ever, or until NCCL's timeout ends the run.

Bad::

    import torch.distributed as dist


    def save(model, rank):
        if rank == 0:
            print("saved")
            dist.barrier()

Bad::

    import torch.distributed as dist


    def mean(loss, rank):
        if rank != 0:
            return None
        dist.all_reduce(loss)
        return loss / dist.get_world_size()

Good::

    import torch.distributed as dist


    def save(model, rank):
        if rank == 0:
            print("saved")
        dist.barrier()

Good::

    import torch.distributed as dist


    def download(rank, fetch):
        if rank != 0:
            dist.barrier()
        data = fetch()
        if rank == 0:
            dist.barrier()
        return data
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.ranks import COLLECTIVES, first_rank_branch, holds_for_others, home
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C311",
    "collective-in-rank-branch",
    ERROR,
    mark("Only the first rank calls `{code}`: it waits for the others for ever"),
    mark("Call it on every rank, outside the test of the rank"),
)


def look(source: Source) -> Iterator[Hit]:
    """Collectives of the whole group behind a test of the rank that no other rank of the function makes up for."""
    calls = source.calls(*COLLECTIVES)
    alone = {call: _entered(source, call) for call in calls}
    for call, test in alone.items():
        name = source.name(call.func)
        if test is None or argument(call, "group", COLLECTIVES[name]) is not None:
            continue
        partners = [
            each
            for each in calls
            if each is not call
            and source.name(each.func) == name
            and home(source, each) is home(source, call)
            and alone[each] is None
            and source.enclosing(each, ast.If) is not None
        ]
        if not partners:
            yield Hit(call, {"code": source.code(call)}, seen=((source.span(test)[0], mark("This test decides it")),))


def _entered(source: Source, call: ast.Call) -> ast.If | None:
    """The test that lets only the first rank come to a call: one around it, or one that others leave by."""
    around = first_rank_branch(source, call)
    if around is not None:
        return around
    statement: ast.AST = source.statement(call)
    for above in source.ancestors(statement):
        block = getattr(above, "body", None)
        if isinstance(block, list) and any(statement is each for each in block):
            for each in block[: next(i for i, one in enumerate(block) if one is statement)]:
                if isinstance(each, ast.If) and _leaves(each) and holds_for_others(each.test):
                    return each
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            break
        statement = above
    return None


def _leaves(statement: ast.If) -> bool:
    return isinstance(statement.body[-1], (ast.Return, ast.Continue))

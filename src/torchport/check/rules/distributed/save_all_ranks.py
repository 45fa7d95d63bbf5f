"""Finds a checkpoint that every rank writes to the same file.

All processes open the file at once; what is left may be a mixture that no one can read.

Bad::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        torch.save(model.module.state_dict(), "model.pt")
        dist.barrier()

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), "model.pt")
        dist.barrier()

Good::

    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        torch.save(model.module.state_dict(), f"model-{rank}.pt")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.nesting import below
from torchport.check.rules.ranks import home, is_guarded, mentions_rank, run_by_every_rank
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C316",
    "save-all-ranks",
    WARNING,
    mark("Every rank writes `{path}` at the same time"),
    mark("Save on the first rank only: `if {rank}() == 0:`"),
)


def look(source: Source) -> Iterator[Hit]:
    """``torch.save`` that no test of the rank guards, to a path without a rank, in what every rank runs."""
    functions = run_by_every_rank(source)
    for call in source.calls("torch.save") if functions else ():
        path = argument(call, "f", 1)
        if path is None or home(source, call) not in functions or is_guarded(source, call):
            continue
        if not _is_path(source, path) or any(mentions_rank(value) for value in [path, *source.values(path)]):
            continue
        statement = source.statement(call)
        rank = _get_rank(source)
        fix: tuple[Change, ...] = ()
        if rank and isinstance(statement, ast.Expr) and statement.value is call:
            fix = below(source, [statement], f"if {rank}() == 0:")
        yield Hit(call, {"path": source.code(path), "rank": rank or "torch.distributed.get_rank"}, fix)


def _is_path(source: Source, node: ast.expr) -> bool:
    """Whether it is the name of a file, not an open one or a temporary one of each process."""
    if isinstance(node, ast.Name) and not source.values(node):
        found = source.scope_at(node).find(node.id)
        return found is not None and all(isinstance(way.node, ast.arg) for way in found[1])
    for value in source.values(node):
        match value:
            case ast.Constant() | ast.JoinedStr() | ast.BinOp() | ast.Attribute():
                if isinstance(value, ast.Attribute) and value.attr == "name":
                    return False
            case ast.Call() if source.name(value.func) in ("os.path.join", "pathlib.Path"):
                pass
            case ast.Call(func=ast.Attribute(attr="format")):
                pass
            case _:
                return False
    return True


def _get_rank(source: Source) -> str:
    """How this file can write ``torch.distributed.get_rank``; empty where it has no name for the module."""
    for name, ways in source.scope.bindings.items():
        if len(ways) == 1 and ways[0].imported == "torch.distributed":
            return f"{name}.get_rank"
    return ""

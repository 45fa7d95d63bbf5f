"""Finds a model that is wrapped in DDP first and moved to its GPU afterwards.

DDP looks at the parameters when it is made: with NCCL it stops because they are on the CPU, or it prepares its
buckets for a device on which they are no longer.

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(model, device):
        model = DDP(model)
        model = model.to(device)
        return model

Good::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def build(model, device):
        model = model.to(device)
        model = DDP(model)
        return model
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.rules.ranks import DDP, home
from torchport.check.rules.training import comes_before, conditions
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C309",
    "ddp-before-move",
    ERROR,
    mark("`{code}` moves a model that DDP has wrapped already"),
    mark("Move the model first, and wrap it then"),
)


def look(source: Source) -> Iterator[Hit]:
    """``model = DDP(model)`` and after it, in the same block, ``model.to(device)``; none before it."""
    for call in source.calls(DDP):
        statement = source.parent(call)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if call.args:
                moves = [each for each in source.calls(".to", ".cuda") if _is_move(source, each, name, call)]
            case _:
                continue
        if "cuda" in source.code(call.args[0]) or ".to(" in source.code(call.args[0]):
            continue
        if any(comes_before(each, call) for each in moves):
            continue
        for move in moves:
            if conditions(source, move) == conditions(source, call):
                yield Hit(move, {"code": source.code(move)}, _swapped(source, statement, source.statement(move)), True)
                break


def _is_move(source: Source, call: ast.Call, name: str, wrap: ast.Call) -> bool:
    """``name.to(…)`` in the same function, or the move of what the wrapper is given."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    target = source.code(call.args[0]) if call.args else ""
    if "cpu" in target or source.name(call.args[0] if call.args else None).startswith("torch."):
        return False  # to the CPU, or to another type
    given = source.code(wrap.args[0])
    return (
        owner is not None
        and source.code(owner) in (name, given)
        and (source.function(call) is source.function(wrap) or comes_before(call, wrap))
        and home(source, call) is home(source, wrap)
    )


def _swapped(source: Source, wrap: ast.stmt, move: ast.stmt) -> tuple[Change, ...]:
    """The two statements in the other order, where one follows the other and both write the same name."""
    block = getattr(source.parent(wrap), "body", [])
    follows = isinstance(block, list) and wrap in block and block[block.index(wrap) + 1 :][:1] == [move]
    match wrap, move:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=given), *_])),
            ast.Assign(targets=[ast.Name(id=moved)]),
        ) if follows and name == given == moved:
            return changes.replace(source, wrap, source.code(move)), changes.replace(source, move, source.code(wrap))
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=given), *_])),
            ast.Expr(),
        ) if follows and name == given:
            return changes.replace(source, wrap, source.code(move)), changes.replace(source, move, source.code(wrap))
    return ()

"""Finds a tensor that never changes and is moved to the GPU in each round of a loop.

Bad::

    import torch

    def train(model, loader, device):
        weight = torch.tensor([0.2, 0.8])
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y, weight.to(device))
            loss.backward()

Good::

    import torch

    def train(model, loader, device):
        weight = torch.tensor([0.2, 0.8])
        weight = weight.to(device)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y, weight)
            loss.backward()

Bad::

    import torch

    mean = torch.ones(3)
    for step in range(100):
        x = torch.randn(8, 3).cuda() - mean.cuda()

Good::

    import torch

    state = torch.ones(3)
    for step in range(100):
        state = state.cuda() + 1
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import before, replace
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.rules.moves import moves
from torchport.check.rules.steps import every_round, names_bound, names_read
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C216",
    "repeated-constant-transfer",
    WARNING,
    mark("`{code}` copies the same tensor to the GPU in each round of the loop"),
    mark("Move it once, in front of the loop"),
)


def look(source: Source) -> Iterator[Hit]:
    """Moves of a tensor that was made outside of the loop, in which nothing gives it another value."""
    for call in source.calls(".to", ".cuda"):
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        loops = source.loops(call)
        if not loops or not isinstance(value, ast.Name) or not moves(source, call) or not is_tensor(source, value):
            continue
        if any(isinstance(each, ast.Call) and moves(source, each) for each in source.values(value)):
            continue  # it is there already, and stays
        loop = loops[-1]
        bound = names_bound(loop)
        if (
            not bound & set(names_read(call))
            and every_round(source, loop, call)
            and not _changed(source, loop, value.id)
        ):
            yield Hit(call, {"code": source.code(call)}, _repair(source, call, value, loop))


def _changed(source: Source, loop: ast.AST, name: str) -> bool:
    """Whether the loop writes into the tensor: ``name[…] =``, or a method in place."""
    for node in ast.walk(loop):
        match node:
            case ast.Subscript(value=ast.Name(id=found), ctx=ast.Store()) if found == name:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=method)) if found == name:
                if method.endswith("_"):
                    return True
    return False


def _repair(source: Source, call: ast.Call, value: ast.Name, loop: ast.stmt) -> tuple[Change, ...]:
    """Where the tensor belongs to the same function and is read by nothing else."""
    found = source.scope_at(value).find(value.id)
    reads = [node for node in source.nodes(ast.Name) if node.id == value.id and isinstance(node.ctx, ast.Load)]
    if found is None or found[0] is not source.scope_at(loop) or len(reads) != 1:
        return ()
    code = " ".join(source.code(call).split())
    return (before(source, loop, f"{value.id} = {code}"), replace(source, call, value.id))

"""Finds batches from pinned memory that are moved to the GPU while the program waits.

``pin_memory=True`` costs time and memory; what it is good for, a copy beside the computing, ``non_blocking=True`` asks.

Bad::

    import torch
    from torch.utils.data import DataLoader

    def train(model, dataset, device):
        loader = DataLoader(dataset, batch_size=64, pin_memory=True)
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            model(x, y)

Good::

    import torch
    from torch.utils.data import DataLoader

    def train(model, dataset, device):
        loader = DataLoader(dataset, batch_size=64, pin_memory=True)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            model(x, y)

Bad::

    import torch
    from torch.utils.data import DataLoader

    loader = DataLoader(torch.ones(100, 3), pin_memory=torch.cuda.is_available())
    for step, x in enumerate(loader):
        print(x.cuda().sum())

Good::

    import torch
    from torch.utils.data import DataLoader

    loader = DataLoader(torch.ones(100, 3), pin_memory=False)
    for step, x in enumerate(loader):
        print(x.cuda().sum())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import LIKELY, WARNING, Hit, Rule
from torchport.check.rules.moves import moves
from torchport.check.rules.steps import looped_over, names_bound
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C214",
    "transfer-without-non-blocking",
    WARNING,
    mark("`{code}` waits for the copy, though the loader pins its memory"),
    mark("Add `non_blocking=True`: the copy then runs beside the computing"),
    confidence=LIKELY,
)


def look(source: Source) -> Iterator[Hit]:
    """``.to(device)`` and ``.cuda()`` on what a loop over a pinned loader gives."""
    pinned = [call for call in source.calls("torch.utils.data.DataLoader") if _pins(call)]
    if not pinned:
        return
    loops = [loop for loop in source.nodes(ast.For) if any(_is(source, each, pinned) for each in looped_over(loop))]
    for call in source.calls(".to", ".cuda") if loops else ():
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        inside = [loop for loop in source.loops(call) if isinstance(loop, ast.For) and loop in loops]
        if not inside or not isinstance(value, ast.Name) or not moves(source, call) or is_open(call):
            continue
        if value.id in names_bound(inside[0].target) and len(call.args) < 2 and argument(call, "non_blocking") is None:
            statement = source.statement(call)
            same = isinstance(statement, ast.Assign) and value.id in names_bound(statement)
            single = isinstance(inside[0].target, ast.Name)
            changes = (add_argument(source, call, "non_blocking=True"),)
            yield Hit(call, {"code": source.code(call)}, changes, safe=same and not single)


def _pins(call: ast.Call) -> bool:
    given = argument(call, "pin_memory")
    return given is not None and (not isinstance(given, ast.Constant) or bool(constant(given)))


def _is(source: Source, node: ast.expr, pinned: list[ast.Call]) -> bool:
    values = source.values(node)
    return bool(values) and all(any(value is call for call in pinned) for value in values)

"""Finds double precision in a forward pass or a training step.

GPUs for graphics and inference compute float64 at a thirty-second to a sixty-fourth of the speed of float32.

Bad::

    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 2)

        def forward(self, x):
            return self.linear(x).double()

Good::

    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 2)

        def forward(self, x):
            return self.linear(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.ranks import home
from torchport.check.rules.training import inner_loop
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C411",
    "float64-in-hot-path",
    INFO,
    mark("`{code}` computes in float64, which many GPUs do at a small part of their speed"),
    mark("Use float32 unless the digits are needed"),
)


def look(source: Source) -> Iterator[Hit]:
    """The first ``.double()`` or ``torch.float64`` of each function, in what ``forward`` runs and in training loops."""
    if ".double(" not in source.text and "float64" not in source.text and "torch.double" not in source.text:
        return
    forwards = run_by_forward(source)
    loops = {inner_loop(source, call) for call in source.calls(".backward")} - {None}
    found: dict[ast.AST, ast.expr] = {}
    for call in source.calls(".double"):
        if not call.args and _is_hot(source, call, forwards, loops):
            found.setdefault(home(source, call), call)
    for node in source.nodes(ast.Attribute):
        if node.attr in ("float64", "double") and source.name(node) in ("torch.float64", "torch.double"):
            above = source.parent(node)
            given = isinstance(above, ast.keyword) or (isinstance(above, ast.Call) and node in above.args)
            if given and _is_hot(source, node, forwards, loops):
                found.setdefault(home(source, node), node)
    for each in found.values():
        yield Hit(each, {"code": source.code(each)})


def _is_hot(source: Source, node: ast.AST, forwards: set[ast.AST], loops: set[ast.For | ast.While | None]) -> bool:
    if ".float()" in source.code(source.statement(node)):
        return False  # there and back: the digits are wanted
    return home(source, node) in forwards or any(loop in loops for loop in source.loops(node))

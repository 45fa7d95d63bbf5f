"""Finds layers that are made anew in each ``forward``.

Each call starts from other random weights, which no optimizer has and no checkpoint keeps; and they are on the CPU,
so on a GPU the call fails.

Bad::

    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)

        def forward(self, x):
            return nn.Linear(8, 2)(self.first(x))

Good::

    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.second = nn.Linear(8, 2)

        def forward(self, x):
            return nn.Softmax(dim=1)(self.second(self.first(x)))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.layers import has_weights, run_by_forward
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C129",
    "module-built-in-forward",
    ERROR,
    mark("`{code}` is made anew in each call: its weights are random, on the CPU, and never trained"),
    mark("Make it once in `__init__` as an attribute of self"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Layers with weights in ``forward`` and what it calls; not those made once, under an ``if``, for self."""
    for method in run_by_forward(source):
        for node in ast.walk(method):
            if not isinstance(node, ast.Call) or not _is_class(source, node) or not has_weights(source, node):
                continue
            above = source.enclosing(node, ast.If, ast.IfExp, ast.FunctionDef, ast.Lambda)
            inner = source.parent(node)
            if above is method and not (isinstance(inner, ast.Call) and has_weights(source, inner)):
                yield Hit(node, {"code": source.code(node)})


def _is_class(source: Source, call: ast.Call) -> bool:
    """A class that is called, and not a method of what was made: ``nn.Linear(2, 2).to(device)``."""
    return bool(source.name(call.func))

"""Finds an ``autograd.Function`` as torch 0.2 had it, whose ``forward`` is no static method.

Since torch 1.5 it raises a RuntimeError when it is called.

Bad::

    import torch

    class Sign(torch.autograd.Function):
        def forward(self, x):
            return x.sign()

        def backward(self, grad):
            return grad

Good::

    import torch

    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, grad):
            return grad
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.loading import methods
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C951",
    "legacy-autograd-function",
    ERROR,
    mark("`{name}.forward` is no static method: calling it raises a RuntimeError since torch 1.5"),
    mark("Make `forward` and `backward` static, with `ctx` first, and call `{name}.apply(…)`"),
    confidence=CERTAIN,
    since=(1, 5),
)


def look(source: Source) -> Iterator[Hit]:
    """Classes whose base is ``Function`` itself, with a ``forward`` that no decorator changes."""
    for owner in source.nodes(ast.ClassDef):
        if not any(
            source.name(base) in ("torch.autograd.Function", "torch.autograd.function.Function") for base in owner.bases
        ):
            continue
        for method in methods(owner, "forward") if not methods(owner, "__call__") else ():
            if isinstance(method, ast.FunctionDef) and not method.decorator_list:
                yield Hit(method, {"name": owner.name})

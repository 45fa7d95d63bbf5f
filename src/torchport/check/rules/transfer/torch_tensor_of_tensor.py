"""Finds ``torch.tensor(…)`` of a tensor, or of a list of them.

A copy of a tensor is ``x.detach().clone()``, and torch warns of the other. From a list every element is fetched from
the GPU for itself, and no gradient flows back.

Bad::

    import torch

    x = torch.ones(3)
    y = torch.tensor(x)

Good::

    import torch

    x = torch.ones(3)
    y = x.detach().clone()

Bad::

    import torch

    first = torch.ones(3).sum()
    second = torch.zeros(3).sum()
    total = torch.tensor([first, second]).mean()

Good::

    import torch

    first = torch.ones(3).sum()
    second = torch.zeros(3).sum()
    total = torch.stack([first, second]).mean()
    sizes = torch.tensor([first.size(0), second.item()])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, WARNING, Change, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.rules.outputs import is_output
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C218",
    "torch-tensor-of-tensor",
    WARNING,
    mark("`{code}` copies from tensors: slowly, and without their gradient"),
    mark("Write `x.detach().clone()` for a copy, `torch.stack([…])` for a list of tensors"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Calls whose data are known to be a tensor, or a list with one in it."""
    for call in source.calls("torch.tensor"):
        if not call.args:
            continue
        data = call.args[0]
        words = {"code": source.code(call)}
        if isinstance(data, (ast.List, ast.Tuple)):
            if any(_is_tensor(source, each) for each in data.elts):
                yield Hit(call, words)
        elif _is_tensor(source, data):
            yield Hit(call, words, _repair(source, call, data), safe=True)


def _is_tensor(source: Source, node: ast.expr) -> bool:
    return not isinstance(node, ast.Starred) and (is_tensor(source, node) or is_output(source, node))


def _repair(source: Source, call: ast.Call, data: ast.expr) -> tuple[Change, ...]:
    """Without a dtype or a device for the copy."""
    simple = isinstance(data, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    code = source.code(data)
    if call.keywords or len(call.args) > 1 or not simple:
        return ()
    return (replace(source, call, f"{code}.detach().clone()"),)

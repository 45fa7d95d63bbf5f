"""Finds a binary cross entropy of probabilities under ``autocast``.

The sigmoid before it may have become exactly 0 or 1 in float16. torch therefore stops: "binary_cross_entropy and
BCELoss are unsafe to autocast".

Bad::

    import torch
    from torch import nn

    criterion = nn.BCELoss()


    def loss(model, x, y):
        with torch.autocast("cuda"):
            return criterion(torch.sigmoid(model(x)), y)

Good::

    import torch
    from torch import nn

    criterion = nn.BCEWithLogitsLoss()


    def loss(model, x, y):
        with torch.autocast("cuda"):
            return criterion(model(x), y)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.training import autocast_around
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C408",
    "bce-under-autocast",
    ERROR,
    mark("`{code}` fails under autocast on a GPU: probabilities do not bear float16"),
    mark("Use BCEWithLogitsLoss on the logits, without the sigmoid"),
)


def look(source: Source) -> Iterator[Hit]:
    """``F.binary_cross_entropy`` and calls of a BCELoss in the block of an autocast that is not the CPU's."""
    named = set(source.calls("torch.nn.functional.binary_cross_entropy"))
    made = bool(source.calls("torch.nn.BCELoss"))
    if not named and not made:
        return
    for call in source.nodes(ast.Call):
        if call in named or (made and "torch.nn.BCELoss" in source.makers(call.func)):
            block = autocast_around(source, call)
            if block is not None and not any(_is_cpu(source, item.context_expr) for item in block.items):
                yield Hit(call, {"code": source.code(call)})


def _is_cpu(source: Source, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return source.name(node.func).startswith("torch.cpu.") or constant(argument(node, "device_type", 0)) == "cpu"

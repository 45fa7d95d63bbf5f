"""Finds a training script that never sets a seed.

Two runs of it differ, so nobody can tell whether a change, or another machine, made the result better or worse.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()

Good::

    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C701",
    "unseeded-run",
    INFO,
    mark("this script trains from random numbers and never sets a seed"),
    mark(
        "Call `torch.manual_seed(…)` before the model is built; on several ranks, with the rank added for augmentation"
    ),
    confidence=POSSIBLE,
)


def look(source: Source) -> Iterator[Hit]:
    """Files that are run, make an optimizer and go backward, and in which the word seed does not stand."""
    if "seed" in source.text.lower() or not source.calls(".backward"):
        return
    made = [
        call
        for call in source.nodes(ast.Call)
        if source.name(call.func).startswith("torch.optim.") and "lr_scheduler" not in source.name(call.func)
    ]
    if made and _is_script(source, made[0]):
        yield Hit(made[0])


def _is_script(source: Source, call: ast.Call) -> bool:
    """Whether a file is run itself: it has a main guard, or trains at its top."""
    if source.function(call) is None and source.method_class(call) is None:
        return True
    return any(isinstance(each, ast.If) and "__name__" in source.code(each.test) for each in source.tree.body)

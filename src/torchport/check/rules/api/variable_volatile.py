"""Finds ``volatile=True``, which no longer stops anything.

It is passed over with a warning: an evaluation that relied on it now keeps the graph of every batch, and memory runs
out.

Bad::

    import torch
    from torch.autograd import Variable

    images = Variable(torch.randn(8, 3), volatile=True)

Good::

    import torch

    with torch.no_grad():
        images = torch.randn(8, 3)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C934",
    "variable-volatile",
    WARNING,
    mark("`volatile` has no effect since torch 0.4: what is computed from this keeps its graph"),
    mark("Put the evaluation under `with torch.no_grad():`"),
    confidence=CERTAIN,
    since=(0, 4),
)


def look(source: Source) -> Iterator[Hit]:
    """Everything but a literal False."""
    for call in source.calls("torch.autograd.Variable", "torch.Variable"):
        given = argument(call, "volatile", 2)
        if given is not None and constant(given) is not False:
            yield Hit(call)

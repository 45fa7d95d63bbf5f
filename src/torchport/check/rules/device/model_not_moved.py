"""Finds a model that is called with tensors on the GPU and was never moved there.

Its parameters are on the CPU.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2)
    x = torch.ones(4, 8, device=device)
    print(model(x))

Good::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2).to(device)
    x = torch.ones(4, 8, device=device)
    print(model(x))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import device_name, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C110",
    "model-not-moved",
    ERROR,
    mark("`{code}` is never moved, and is called with a tensor on the GPU"),
    mark("Move it once, where it is built: `.to(device)`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Modules on the CPU that are given tensors of the GPU."""
    for event, node in meetings(source, META.name):
        device = device_name(source, node)
        end = source.span(node)[1]
        statement = isinstance(source.parent(node), ast.Assign)
        changes = ((end, end, f".to({device})"),) if device and statement else ()
        yield Hit(node, {"code": source.code(node)}, changes, safe=True, seen=where(source, event))

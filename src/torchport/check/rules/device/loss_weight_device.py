"""Finds the weights of a loss on the CPU when what it compares is on the GPU.

A loss keeps ``weight`` and ``pos_weight`` as buffers: they go where the loss is moved, and few move a loss.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2).to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    y = torch.zeros(4, dtype=torch.long, device=device)
    criterion(model(torch.ones(4, 8, device=device)), y).backward()

Good::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2).to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0])).to(device)
    y = torch.zeros(4, dtype=torch.long, device=device)
    criterion(model(torch.ones(4, 8, device=device)), y).backward()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Change, Hit, Rule
from torchport.check.rules.meetings import device_name, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C107",
    "loss-weight-device",
    ERROR,
    mark("the weight of the loss, `{code}`, is on the CPU, the predictions are on the GPU"),
    mark("Move the loss with the model: `criterion = … .to(device)`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Weights that their loss has not taken along."""
    for event, node in meetings(source, META.name):
        call = source.parent(node)
        call = source.parent(call) if isinstance(call, ast.keyword) else call
        device = device_name(source, node)
        changes: tuple[Change, ...] = ()
        if (
            device
            and isinstance(call, ast.Call)
            and source.name(call.func).startswith("torch.nn.")
            and ("functional" not in source.name(call.func))
        ):
            end = source.span(call)[1]
            changes = ((end, end, f".to({device})"),)
        yield Hit(node, {"code": source.code(node)}, changes, safe=True, seen=where(source, event))

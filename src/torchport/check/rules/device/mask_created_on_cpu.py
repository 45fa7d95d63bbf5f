"""Finds a mask made on the CPU for a tensor on the GPU.

``masked_fill``, ``&`` and attention read mask and scores where they run, and nothing moves by itself.

Bad::

    import torch
    from torch import nn


    class Attention(nn.Module):
        def forward(self, x):
            scores = x @ x.transpose(1, 2)
            future = torch.ones(x.size(1), x.size(1)).triu(1).bool()
            return scores.masked_fill(future, float("-inf")).softmax(-1) @ x

Good::

    import torch
    from torch import nn


    class Attention(nn.Module):
        def forward(self, x):
            scores = x @ x.transpose(1, 2)
            future = torch.ones(x.size(1), x.size(1), device=x.device).triu(1).bool()
            return scores.masked_fill(future, float("-inf")).softmax(-1) @ x
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import device_expression, factory_on, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C103",
    "mask-created-on-cpu",
    ERROR,
    mark("the mask `{code}` is on the CPU, what it masks on the GPU"),
    mark("Make it on the device of what it masks: `device=x.device`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Masks from factories without a device."""
    for event, node in meetings(source, META.name):
        changes = factory_on(source, node, device_expression(source, node))
        yield Hit(node, {"code": source.code(node)}, changes, safe=True, seen=where(source, event))

"""Finds a tensor on the CPU that is indexed with one on the GPU.

A tensor of the GPU takes an index from the CPU; the other way round raises.

Bad::

    import torch

    table = torch.randn(100, 8)
    picked = torch.tensor([3, 5], device="cuda")
    print(table[picked])

Good::

    import torch

    table = torch.randn(100, 8, device="cuda")
    picked = torch.tensor([3, 5])
    print(table[picked])
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import meetings
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C111",
    "index-device-mismatch",
    ERROR,
    mark("a tensor on the CPU is indexed with `{index}`, which is on the GPU"),
    mark("Move the table to the GPU once, or bring the index back with `.cpu()`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """CPU tables with GPU indices."""
    for event, node in meetings(source, META.name):
        if event.source is source:
            yield Hit(event.node, {"index": event.other})
        else:
            yield Hit(node, {"index": event.other})

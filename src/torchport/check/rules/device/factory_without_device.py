"""Finds a tensor made on the CPU that meets tensors on the GPU.

``torch.zeros``, ``torch.arange`` and their like make their tensor on the CPU unless told otherwise. In ``forward`` it
meets the module's input and parameters, which are on the GPU.

Bad::

    import torch
    from torch import nn


    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(512, 64)

        def forward(self, x):
            places = torch.arange(x.size(1))
            return x + self.embed(places)

Good::

    import torch
    from torch import nn


    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(512, 64)

        def forward(self, x):
            places = torch.arange(x.size(1), device=x.device)
            return x + self.embed(places)

Good::

    import torch
    from torch import nn


    class Scaled(nn.Module):
        def forward(self, x):
            return x * torch.tensor(0.5)  # a CPU tensor without dimensions is let through
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import device_expression, factory_on, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C102",
    "factory-without-device",
    ERROR,
    mark("`{code}` is on the CPU and meets a tensor on the GPU"),
    mark("Make it on the device of the tensor that it meets: `device=x.device`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Tensors from factories without a device."""
    for event, node in meetings(source, META.name):
        changes = factory_on(source, node, device_expression(source, node))
        yield Hit(node, {"code": source.code(node)}, changes, safe=True, seen=where(source, event))

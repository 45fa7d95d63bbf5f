"""Finds the first hidden state of a recurrent layer made on the CPU.

``torch.zeros`` for ``h0`` and ``c0`` stays on the CPU when the layer and its input are on the GPU.

Bad::

    import torch
    from torch import nn


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(32, 64, batch_first=True)

        def forward(self, x):
            h0 = torch.zeros(1, x.size(0), 64)
            out, _ = self.rnn(x, h0)
            return out

Good::

    import torch
    from torch import nn


    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(32, 64, batch_first=True)

        def forward(self, x):
            h0 = torch.zeros(1, x.size(0), 64, device=x.device)
            out, _ = self.rnn(x, h0)
            return out
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import device_expression, factory_on, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C104",
    "hidden-state-on-cpu",
    ERROR,
    mark("the hidden state `{code}` is on the CPU, the recurrent layer on the GPU"),
    mark("Make it where the input is: `device=x.device`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Hidden states from factories without a device."""
    for event, node in meetings(source, META.name):
        changes = factory_on(source, node, device_expression(source, node))
        yield Hit(node, {"code": source.code(node)}, changes, safe=True, seen=where(source, event))

"""Finds a batch that reaches a model on the GPU without having been moved there.

A loader gives tensors on the CPU. What the model and the loss read has to be moved in the loop.

Bad::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def evaluate(dataset):
        device = torch.device("cuda")
        model = nn.Linear(8, 2).to(device)
        for x in DataLoader(dataset):
            print(model(x))

Good::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def evaluate(dataset):
        device = torch.device("cuda")
        model = nn.Linear(8, 2).to(device)
        for x in DataLoader(dataset):
            x = x.to(device)
            print(model(x))
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import meetings, moved_in_loop
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C105",
    "untransferred-batch",
    ERROR,
    mark("`{code}`: a batch from the loader is still on the CPU, the model is on the GPU"),
    mark("Move it at the beginning of the loop: `{line}`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Batches that meet the GPU."""
    for event, node in meetings(source, META.name):
        at = event.node if event.source is source else node
        changes = moved_in_loop(source, event)
        line = "; ".join(text.strip() for _start, _end, text in changes) or "x = x.to(device)"
        yield Hit(at, {"code": source.code(at), "line": line}, changes, safe=True)

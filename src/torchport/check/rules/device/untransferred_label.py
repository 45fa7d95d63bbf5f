"""Finds labels that meet predictions on the GPU without having been moved there.

The input is moved, the labels that come with it are forgotten, and the loss raises.

Bad::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def train(dataset):
        device = torch.device("cuda")
        model = nn.Linear(8, 2).to(device)
        criterion = nn.CrossEntropyLoss()
        for x, y in DataLoader(dataset):
            x = x.to(device)
            criterion(model(x), y).backward()

Good::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def train(dataset):
        device = torch.device("cuda")
        model = nn.Linear(8, 2).to(device)
        criterion = nn.CrossEntropyLoss()
        for x, y in DataLoader(dataset):
            y = y.to(device)
            x = x.to(device)
            criterion(model(x), y).backward()
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import meetings, moved_in_loop
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C106",
    "untransferred-label",
    ERROR,
    mark("`{code}`: the labels are still on the CPU, the predictions on the GPU"),
    mark("Move them where the input is moved: `{line}`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Labels that meet the GPU."""
    for event, node in meetings(source, META.name):
        at = event.node if event.source is source else node
        changes = moved_in_loop(source, event)
        line = "; ".join(text.strip() for _start, _end, text in changes) or "y = y.to(device)"
        yield Hit(at, {"code": source.code(at), "line": line}, changes, safe=True)

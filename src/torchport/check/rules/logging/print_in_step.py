"""Finds a print of what is on the GPU in every step.

The program waits there until the GPU has done all that was asked of it, and the GPU then waits for the program.

Bad::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    model = nn.Linear(4, 2).to("cuda")
    for step, (images, labels) in enumerate(DataLoader(CIFAR10("data"))):
        loss = model(images).sum()
        loss.backward()
        print("loss", loss.item())

Good::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10

    model = nn.Linear(4, 2).to("cuda")
    for step, (images, labels) in enumerate(DataLoader(CIFAR10("data"))):
        loss = model(images).sum()
        loss.backward()
        if step % 50 == 0:
            print("loss", loss.item())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.loading import inside, loops_over_loaders
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C720",
    "print-in-step",
    INFO,
    mark("this print waits for the GPU in every step"),
    mark("Print every so many steps: `if step % 50 == 0:`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Prints with ``.item()`` straight in a loop over batches that also goes backward."""
    prints = [each for each in source.nodes(ast.Call) if isinstance(each.func, ast.Name) and each.func.id == "print"]
    items = source.calls(".item")
    for loop in loops_over_loaders(source) if prints and items else ():
        if not any(inside(source, call, loop) for call in source.calls(".backward")):
            continue
        for call in prints:
            if source.parent(source.parent(call) or call) is loop and any(inside(source, each, call) for each in items):
                yield Hit(call)

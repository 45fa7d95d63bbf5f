"""Computes forward pass and loss in bfloat16 on the GPU.

The CPU computes as before. bfloat16 has the range of float32, so gradients need no scaling; cards before Ampere have
no units for it: ``amp-fp16`` is for them.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train(loader, device):
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            output = model(x)  # logits
            loss = criterion(output, y)
            loss.backward()
            optimizer.step()


    def test(loader, device):
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in loader:
                correct += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
        return correct

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train(loader, device):
        model.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
                output = model(x)  # logits
                loss = criterion(output, y)
            loss.backward()
            optimizer.step()


    def test(loader, device):
        model.eval()
        correct = 0
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
            for x, y in loader:
                correct += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
        return correct

Bad::

    import torch
    import torch.nn.functional as F


    def train(model, optimizer, batches):
        for x in batches:
            restored, mu = model(x)
            loss = F.binary_cross_entropy(restored, x) + mu.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def main(batches):
        model = torch.nn.Linear(4, 4)
        train(model, torch.optim.Adam(model.parameters()), batches)

Good::

    import torch
    import torch.nn.functional as F


    def train(model, optimizer, batches):
        for x in batches:
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
                restored, mu = model(x)
            loss = F.binary_cross_entropy(restored.float(), x) + mu.float().pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


    def main(batches):
        model = torch.nn.Linear(4, 4)
        train(model, torch.optim.Adam(model.parameters()), batches)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.migrate import precision
from torchport.migrate.recipe import Recipe, Variant
from torchport.migrate.tree import Tree
from torchport.text import mark


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """Training and evaluation; without what does not bear it."""
    for found in precision.mixed(tree, entry, "bfloat16"):
        yield found.variant


# bfloat16 keeps 8 bits: each result is off by up to 0.4 %, and a few steps of training add up.
TOLERANCE = 0.05
META = Recipe("amp", mark("forward pass and loss in bfloat16"), variants, tolerance=TOLERANCE)

"""Finds a distributed training loop that a rank may leave by itself.

If one rank stops early because of its own loss, the others wait for its gradients in the next step for ever.

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer, criterion, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            if loss.item() < 0.01:
                break
            loss.backward()
            optimizer.step()

Good::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer, criterion, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if mean.item() < 0.01:
                break
            loss.backward()
            optimizer.step()

Good::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer, criterion, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        for step, (x, y) in enumerate(loader):
            if step > 100:
                break
            criterion(model(x), y).backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import ERROR, POSSIBLE, Hit, Rule
from torchport.check.rules.ranks import DDP, home
from torchport.check.rules.words import plain
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C313",
    "rank-divergent-break",
    ERROR,
    mark("`{code}` ends the loop of one rank by its own loss; the others wait for it"),
    mark("Let the ranks agree first: reduce the loss over all of them, or broadcast the decision"),
    confidence=POSSIBLE,
)
_LOCAL = re.compile(r"loss|early_?stop", re.IGNORECASE)
_SHARED = re.compile(r"reduce|gather|broadcast|sync|average_", re.IGNORECASE)


def look(source: Source) -> Iterator[Hit]:
    """``if … loss …: break`` in a loop with a backward pass of a function that wraps its model and shares nothing."""
    functions = [home(source, call) for call in source.calls(DDP)]
    if not functions:
        return
    for leave in (*source.nodes(ast.Break), *source.nodes(ast.Return)):
        test = source.parent(leave)
        if not isinstance(test, ast.If) or home(source, leave) not in functions or leave not in test.body:
            continue
        loops = source.loops(test)
        trained = [call for call in source.calls(".backward") if set(source.loops(call)) & set(loops)]
        if not trained or not _LOCAL.search(source.code(test.test)):
            continue
        here = home(source, leave)
        if isinstance(here, ast.Module) or not _SHARED.search(plain(source.code(here))):
            yield Hit(leave, {"code": f"if {source.code(test.test)}"})

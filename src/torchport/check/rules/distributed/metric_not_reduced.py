"""Finds a number that each rank adds up for itself and then reports.

In a distributed run every process sees its own part of the data; what it prints is not the loss or the accuracy of
the model on all of it.

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer, criterion, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("loss", total / len(loader))

Good::

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model, loader, optimizer, criterion, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        total = torch.zeros((), device=rank)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        print("loss", total.item() / len(loader) / dist.get_world_size())
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.ranks import home, run_by_every_rank
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C314",
    "metric-not-reduced",
    INFO,
    mark("`{name}` is the sum of this rank's part of the data alone"),
    mark("Add it up over all ranks with torch.distributed.all_reduce before it is reported"),
)
_SHARED = re.compile(r"reduce|gather|synchronize_between|torchmetrics|compute\(", re.IGNORECASE)
_REPORTS = ("print", "log", "info", "add_scalar", "write")


def look(source: Source) -> Iterator[Hit]:
    """Sums of ``.item()`` that a report names, in functions that every rank runs and in a file that shares nothing."""
    functions = run_by_every_rank(source)
    if not functions or _SHARED.search(code_of(source)):
        return
    for report in source.nodes(ast.Call):
        last = report.func.id if isinstance(report.func, ast.Name) else getattr(report.func, "attr", "")
        here = home(source, report)
        if last not in _REPORTS or here not in functions:
            continue
        named = {each.id for each in ast.walk(report) if isinstance(each, ast.Name)}
        for total in source.nodes(ast.AugAssign):
            if (
                isinstance(total.target, ast.Name)
                and total.target.id in named
                and home(source, total) is here
                and ".item()" in source.code(total.value)
            ):
                yield Hit(report, {"name": total.target.id})
                return

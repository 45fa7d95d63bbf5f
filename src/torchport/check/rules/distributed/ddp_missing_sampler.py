"""Finds a DDP training whose loader gives every rank all of the data.

Without a ``DistributedSampler`` each process goes through the whole data set: an epoch takes as long as on one GPU,
and the gradients that are averaged come from samples that several ranks may draw at once.

Bad::

    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    def train(model, data, optimizer, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        loader = DataLoader(data, batch_size=32, shuffle=True)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank)).backward()
            optimizer.step()

Good::

    import torch
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader


    def train(model, data, optimizer, rank):
        model = DDP(model.to(rank), device_ids=[rank])
        loader = DataLoader(data, batch_size=32, sampler=torch.utils.data.DistributedSampler(data))
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank)).backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.ranks import DDP, SAMPLER, mentions_rank
from torchport.check.rules.steps import looped_over
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C302",
    "ddp-missing-sampler",
    WARNING,
    mark("Every rank trains on all of `{data}`: the loader has no DistributedSampler"),
    mark("Give the loader `sampler=torch.utils.data.DistributedSampler({data})` and leave out shuffle"),
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders without a sampler over which a loop with a backward pass runs, where the file wraps a model in DDP."""
    if not source.calls(DDP) or source.calls(SAMPLER) or "IterableDataset" in code_of(source):
        return
    trained: set[ast.expr] = set()
    for call in source.calls(".backward"):
        for loop in source.loops(call)[:1]:
            if isinstance(loop, ast.For):
                trained.update(value for each in looped_over(loop) for value in source.values(each))
    for loader in source.calls("torch.utils.data.DataLoader"):
        data = argument(loader, "dataset", 0)
        if loader not in trained or data is None or is_open(loader):
            continue
        shuffle = next((each for each in loader.keywords if each.arg == "shuffle"), None)
        if argument(loader, "sampler", 3) is not None or argument(loader, "batch_sampler", 4) is not None:
            continue
        if any(mentions_rank(value) for value in [data, *source.values(data)]):
            continue
        text = source.code(data)
        changes: tuple[Change, ...] = ()
        if isinstance(data, ast.Name) and shuffle is not None and constant(shuffle.value) is True:
            changes = ((*source.span(shuffle), f"sampler=torch.utils.data.DistributedSampler({text})"),)
        yield Hit(loader, {"data": text}, changes, needs=("torch",))

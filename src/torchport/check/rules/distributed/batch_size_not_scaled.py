"""Finds a distributed loader whose batch size takes no account of the number of ranks.

``batch_size`` is what each rank takes. With eight ranks a step averages over eight times as many samples as on one
GPU, with as many steps less per epoch; the learning rate that was right before may not be any more.

Bad::

    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler


    def train(model, data, optimizer, rank):
        loader = DataLoader(data, batch_size=256, sampler=DistributedSampler(data))
        model = DDP(model.to(rank), device_ids=[rank])
        for x in loader:
            model(x).mean().backward()
            optimizer.step()

Good::

    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler


    def train(model, data, optimizer, rank):
        batch_size = 256 // dist.get_world_size()
        loader = DataLoader(data, batch_size=batch_size, sampler=DistributedSampler(data))
        model = DDP(model.to(rank), device_ids=[rank])
        for x in loader:
            model(x).mean().backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.rules.ranks import DDP, SAMPLER
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C324",
    "batch-size-not-scaled",
    INFO,
    mark("Each rank takes `{size}` samples: a step uses that many times the number of ranks"),
    mark("Divide the batch size by the number of ranks, or scale the learning rate"),
    confidence=POSSIBLE,
)
_RANKS = re.compile(
    r"world_?size|nprocs|ngpus|n_gpus|num_gpus|device_count|num_replicas|gpu_num|per_(gpu|device|rank)", re.I
)


def look(source: Source) -> Iterator[Hit]:
    """Loaders with a distributed sampler in a file that wraps a model and never reckons with the number of ranks."""
    if not source.calls(DDP) or not source.calls(".backward"):
        return
    for node in source.nodes(ast.BinOp):
        if isinstance(node.op, (ast.Mult, ast.Div, ast.FloorDiv)) and _RANKS.search(source.code(node)):
            return
    samplers = set(source.calls(SAMPLER))
    for call in source.calls("torch.utils.data.DataLoader"):
        size, sampler = argument(call, "batch_size", 1), argument(call, "sampler", 3)
        if size is None or sampler is None or _RANKS.search(source.code(size)):
            continue
        if samplers & set(source.values(sampler)):
            yield Hit(size, {"size": source.code(size)})
            return

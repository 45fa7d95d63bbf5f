"""Finds a seed that is the same in every rank.

All processes then draw the same random numbers: the same dropout, the same noise, the same augmentation. DDP needs
no equal seeds to start from equal weights: it sends those of the first rank to all others.

Bad::

    import torch
    import torch.distributed as dist


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.manual_seed(42)

Good::

    import torch
    import torch.distributed as dist


    def worker(rank, world_size):
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        torch.manual_seed(42 + rank)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.rules.ranks import home, mentions_rank, run_by_every_rank
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C325",
    "rank-identical-seed",
    INFO,
    mark("`{code}` makes all ranks draw the same random numbers"),
    mark("Add the rank to the seed, after the model is made where its weights are to be the same as before"),
    confidence=POSSIBLE,
)
_SEEDS = ("torch.manual_seed", "numpy.random.seed", "random.seed", "torch.cuda.manual_seed")
_SHARDED = re.compile(r"FSDP|FullySharded|fully_shard|[Dd]evice_?[Mm]esh|tensor_parallel|distributed\.rpc")  # one model


def look(source: Source) -> Iterator[Hit]:
    """The first seed in a function that every rank runs, in a file where no seed has to do with the rank."""
    functions = run_by_every_rank(source)
    calls = source.calls(*_SEEDS, "torch.cuda.manual_seed_all") if functions else []
    if not calls or _SHARDED.search(code_of(source)) or any(_knows_rank(source, call) for call in calls):
        return
    for call in calls:
        plain = bool(call.args) and not any(isinstance(each, ast.Call) for each in ast.walk(call.args[0]))
        if home(source, call) in functions and plain:
            yield Hit(call, {"code": source.code(call)})
            return


def _knows_rank(source: Source, call: ast.Call) -> bool:
    """Whether a seed has anything to do with the rank, itself or by the names in it."""
    names = [each for given in call.args for each in ast.walk(given) if isinstance(each, (ast.Name, ast.Attribute))]
    return any(mentions_rank(value) for name in names for value in [name, *source.values(name)])

"""Finds a progress bar that every rank shows.

Eight of them write over each other in one terminal, and fill the log of a job.

Bad::

    import torch.distributed as dist
    from tqdm import tqdm

    dist.init_process_group("nccl")
    for step in tqdm(range(1000)):
        pass

Good::

    import torch.distributed as dist
    from tqdm import tqdm

    dist.init_process_group("nccl")
    for step in tqdm(range(1000), disable=dist.get_rank() != 0):
        pass
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import INFO, Hit, Rule
from torchport.check.rules.layers import spelled
from torchport.check.rules.ranks import home, is_guarded, run_by_every_rank
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C721",
    "tqdm-all-ranks",
    INFO,
    mark("every rank shows this progress bar"),
    mark("Show it on one: `disable=dist.get_rank() != 0`"),
)
_BARS = ("tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange")


def look(source: Source) -> Iterator[Hit]:
    """Bars in what every rank runs, neither disabled nor behind a test of the rank."""
    everywhere = run_by_every_rank(source)
    rank = spelled(source, "torch.distributed.get_rank")
    for call in source.calls(*_BARS):
        alone = home(source, call) not in everywhere or is_guarded(source, call)
        if argument(call, "disable") is None and not is_open(call) and not alone:
            change = (add_argument(source, call, f"disable={rank}() != 0"),) if rank else ()
            yield Hit(call, changes=change)

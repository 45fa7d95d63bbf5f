"""Finds a log file of one name that every rank writes.

Their lines are mixed, or the rank that opens it last empties what the others wrote.

Bad::

    import logging

    import torch.distributed as dist

    dist.init_process_group("nccl")
    logging.basicConfig(filename="train.log", level=logging.INFO)

Good::

    import logging

    import torch.distributed as dist

    dist.init_process_group("nccl")
    logging.basicConfig(filename=f"train-{dist.get_rank()}.log", level=logging.INFO)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.ranks import home, is_guarded, run_by_every_rank
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C723",
    "log-file-all-ranks",
    WARNING,
    mark("every rank writes `{path}`"),
    mark("Put the rank into the name, or log on one rank alone"),
)
_WRITERS = {
    "logging.basicConfig": ("filename", None),
    "logging.FileHandler": ("filename", 0),
    "logging.handlers.RotatingFileHandler": ("filename", 0),
}


def look(source: Source) -> Iterator[Hit]:
    """Fixed names in what every rank runs, not behind a test of the rank."""
    everywhere = run_by_every_rank(source)
    for call in source.calls(*_WRITERS):
        path = constant(argument(call, *_WRITERS[source.name(call.func)]))
        alone = home(source, call) not in everywhere or is_guarded(source, call)
        if isinstance(path, str) and not alone:
            yield Hit(call, {"path": path})

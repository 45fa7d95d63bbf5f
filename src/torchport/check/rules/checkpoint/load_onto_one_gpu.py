"""Finds ranks that all load a checkpoint onto the same GPU.

A fixed ``map_location`` is the same for every process: eight ranks then hold eight copies on GPU 0, which runs out of
memory first, and each has made a context there that stays.

Bad::

    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    checkpoint = torch.load("last.pt", map_location="cuda:0")

    best = torch.load("best.pt", map_location=torch.device("cuda", 0))

Good::

    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    checkpoint = torch.load("last.pt", map_location=f"cuda:{local_rank}")

    best = torch.load("best.pt", map_location="cpu")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import loads
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C803",
    "load-onto-one-gpu",
    WARNING,
    mark("every rank loads this checkpoint onto {device}"),
    mark('Load to the rank\'s own GPU, `map_location=f"cuda:{{local_rank}}"`, or to `"cpu"`'),
)


def look(source: Source) -> Iterator[Hit]:
    """Fixed GPUs, in a file that starts a process group."""
    if not source.calls("torch.distributed.init_process_group"):
        return
    for call in loads(source):
        given = argument(call, "map_location", 1)
        device = _fixed(source, given) if given is not None else ""
        if device and given is not None:
            yield Hit(given, {"device": device})


def _fixed(source: Source, node: ast.expr) -> str:
    """``cuda:0``, where a device is that and no other."""
    if isinstance(node, ast.Call) and source.name(node.func) == "torch.device" and node.args:
        number = constant(node.args[1]) if len(node.args) > 1 else None
        return f"cuda:{number}" if isinstance(number, int) else _fixed(source, node.args[0])
    text = constant(node)
    return text if isinstance(text, str) and re.fullmatch(r"cuda:\d+", text) else ""

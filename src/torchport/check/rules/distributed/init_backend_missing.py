"""Finds ``init_process_group`` without a backend, where that depends on the version of torch.

Before torch 2.0 the backend had to be given. Until 2.5 a group without one gets Gloo and NCCL side by side; since
2.6 torch takes the backend of the accelerator that it finds.

Bad::

    import torch
    import torch.distributed as dist

    dist.init_process_group(init_method="env://")

Good::

    import torch
    import torch.distributed as dist

    dist.init_process_group(init_method="env://", backend="nccl" if torch.cuda.is_available() else "gloo")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.ranks import INIT
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C305",
    "init-backend-missing",
    WARNING,
    mark("`{code}` names no backend: before torch 2.6 that fails or starts two of them"),
    mark("Say which: NCCL for GPUs, Gloo for CPUs"),
    confidence=CERTAIN,
    until=(2, 6),
)


def look(source: Source) -> Iterator[Hit]:
    """Calls that name no backend and pass on no unknown arguments."""
    for call in source.calls(INIT):
        if argument(call, "backend", 0) is None and not is_open(call):
            text = 'backend="nccl" if torch.cuda.is_available() else "gloo"'
            change = changes.add_argument(source, call, text)
            yield Hit(call, {"code": source.code(call)}, (change,), needs=("torch",))

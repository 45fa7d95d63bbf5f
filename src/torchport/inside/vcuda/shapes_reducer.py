"""DistributedDataParallel without numbers: its reducer in C++ reads numbers that it has sent, and crashes on none.

What stays is what a rehearsal of shapes is for: the memory of the buckets, and a collective for each of them once its
gradients are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from torchport.inside.vcuda.patches import Patches


def install(patches: Patches) -> None:
    """Takes the places of torch's reducer, its logger, and its comparison of the ranks' parameters."""
    patches.set(torch.distributed, "Reducer", Reducer)
    patches.set(torch.distributed, "Logger", Logger)
    patches.set(torch.distributed, "_verify_params_across_processes", lambda *args: None)


class Reducer:
    """Sums each bucket when backward has been through all of its parameters."""

    def __init__(
        self, parameters: Sequence[Any], buckets: Sequence[Sequence[int]], limits: Any, group: Any, *rest: Any
    ) -> None:
        self.group = group
        self.waited_for: list[set[int]] = []
        self.members = [frozenset(indices) for indices in buckets]
        self.flat = []
        for number, indices in enumerate(buckets):
            first = parameters[indices[0]]
            size = sum(parameters[index].numel() for index in indices)
            self.flat.append(torch.empty(size, dtype=first.dtype, device=first.device))
            for index in indices:
                parameters[index].register_post_accumulate_grad_hook(partial(self._ready, number, index))

    def prepare_for_backward(self, outputs: Any) -> None:
        """From now on gradients are waited for."""
        self.waited_for = [set(indices) for indices in self.members]

    def _ready(self, number: int, index: int, parameter: Any) -> None:
        if self.waited_for and self.waited_for[number]:
            self.waited_for[number].discard(index)
            if not self.waited_for[number]:
                self.group.allreduce([self.flat[number]]).wait()

    def __getattr__(self, name: str) -> Any:
        return _nothing


class Logger:
    """Takes everything and keeps nothing."""

    def __init__(self, reducer: Any) -> None:
        """As torch makes it."""

    def _get_ddp_logging_data(self) -> Any:
        return SimpleNamespace(strs_map={}, ints_map={})

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Of no effect."""

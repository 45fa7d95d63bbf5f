"""The virtual device as a whole: what it installs, for how long."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from torchport.hardware.gpus import GpuSpec, lookup
from torchport.inside.vcuda import (
    accelerator,
    autocast,
    backends,
    calls,
    cuda,
    dataparallel,
    device_type,
    distributed,
    face,
    factories,
    foreach,
    functions,
    generators,
    graphs,
    legacy,
    memory,
    moves,
    profiling,
    rng,
    serialization,
    streams,
    syncs,
    tags,
    threads,
    training,
)
from torchport.inside.vcuda.faults import Faults, Seen
from torchport.inside.vcuda.floor import Floor
from torchport.inside.vcuda.machine import Machine, Options
from torchport.inside.vcuda.patches import Patches

# In this order: the face gives storages their tag, the factories wrap what the others have put in place.
PARTS = (
    device_type,
    face,
    moves,
    generators,
    cuda,
    streams,
    graphs,
    memory,
    rng,
    backends,
    profiling,
    accelerator,
    legacy,
    factories,
    serialization,
    autocast,
    calls,
    foreach,
    functions,
    training,
    dataparallel,
)

_current: list[Session] = []


class Session:
    """The virtual device while it is there. One at a time in a process."""

    def __init__(self, spec: GpuSpec, options: Options) -> None:
        self.machine = Machine(spec, options)
        self.machine.faults = Faults(self.machine)
        self.machine.on_sync = lambda name: syncs.waited(self.machine, name, reported=False)
        self.floor = Floor(self.machine)
        self.patches = Patches()

    @property
    def findings(self) -> list[Seen]:
        """What was recorded, in order; ``count`` tells repeats."""
        return list(self.machine.faults.seen.values())

    @property
    def sync_count(self) -> int:
        """How often the host waited for a device."""
        return self.machine.sync_count

    def from_loader(self, batch: Any) -> None:
        """Tensors that a DataLoader yields are born at the loop that asks for them."""
        place = self.machine.places.here()
        stack = [batch]
        while stack:
            item = stack.pop()
            if isinstance(item, torch.Tensor):
                tags.born(item, place, "DataLoader")
            elif isinstance(item, dict):
                stack.extend(item.values())
            elif isinstance(item, (list, tuple)):
                stack.extend(item)

    def enter(self) -> None:
        """Installs the device in this process."""
        # Every optimizer imports torch's compiler, which reads the signatures of torch's own functions as it loads.
        importlib.import_module("torch._dynamo")
        try:
            for part in PARTS:
                part.install(self.patches, self.machine)
            threads.install(self.patches, self.machine, self.floor)
            distributed.install(self.patches, self.machine, self.floor)
        except BaseException:
            self.patches.undo()
            raise
        self.floor.__enter__()
        _current.append(self)

    def leave(self) -> None:
        """Takes everything back."""
        _current.remove(self)
        self.floor.__exit__(None, None, None)
        self.patches.undo()


def current() -> Session | None:
    """The session of this process, if there is one."""
    return _current[-1] if _current else None


@contextmanager
def virtual_cuda(
    gpus: int = 1,
    gpu: str = "a100-80gb",
    strict: bool = False,
    backing: str = "cpu",
    project: str | None = None,
) -> Iterator[Session]:
    """Gives this process ``gpus`` cards of the model ``gpu`` for the length of a with-block.

    Raises UnknownGpu for a card that is not in the table.
    """
    session = Session(lookup(gpu), Options(gpus, strict, backing, project or os.getcwd()))
    session.enter()
    try:
        yield session
    finally:
        session.leave()

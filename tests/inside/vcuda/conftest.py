"""A virtual card as far as torch.cuda goes: no tensors, so that what is patched can be looked at alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
import torch

from torchport.hardware.gpus import lookup
from torchport.inside.vcuda import (
    accelerator,
    backends,
    cuda,
    graphs,
    memory,
    profiling,
    rng,
    streams,
)
from torchport.inside.vcuda.machine import Machine, Options
from torchport.inside.vcuda.patches import Patches

PARTS = (cuda, streams, memory, rng, graphs, backends, profiling, accelerator)


class Remarks:
    """Stands where the session's faults stand: a list of (id, what)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def remark(self, id: str, what: str, text: str) -> None:
        self.seen.append((id, what))

    def refuse(self, id: str, text: str, error: type[BaseException], **told: object) -> None:
        """As in strict mode: what CUDA refuses is raised."""
        raise error(text)


Facade = Callable[..., AbstractContextManager[Machine]]


@pytest.fixture
def facade() -> Facade:
    """``with facade(gpus=2, gpu="a100") as machine:``"""
    return _facade


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Two cards, as far as torch.cuda goes."""
    with _facade() as machine:
        yield machine


@contextmanager
def _facade(gpus: int = 2, gpu: str = "a100") -> Iterator[Machine]:
    """Installs the facades only, and checks that everything is as before when they are gone."""
    before = _everything()
    machine = Machine(lookup(gpu), Options(gpus=gpus))
    machine.faults = Remarks()  # type: ignore[assignment]
    patches = Patches()
    try:
        for part in PARTS:
            part.install(patches, machine)
        yield machine
    finally:
        patches.undo()
        torch.set_default_dtype(torch.float32)
    after = _everything()
    changed = [
        f"{space}.{name}"
        for space in before
        for name in (before[space].keys() | after[space].keys()) - {"__warningregistry__"}
        if before[space].get(name, "absent") is not after[space].get(name, "absent")
    ]
    assert not changed, f"left behind: {changed}"


def _everything() -> dict[str, dict[str, Any]]:
    torch_: Any = torch
    spaces = {
        "torch": torch,
        "torch._C": torch._C,
        "torch.version": torch.version,
        "torch.random": torch.random,
        "torch.Tensor": torch.Tensor,
        "torch.cuda": torch.cuda,
        "torch.cuda.memory": torch.cuda.memory,
        "torch.cuda.streams": torch.cuda.streams,
        "torch.cuda.graphs": torch.cuda.graphs,
        "torch.cuda.nvtx": torch.cuda.nvtx,
        "torch.cuda._utils": torch_.cuda._utils,
        "torch.backends.cuda": torch.backends.cuda,
        "torch.backends.cudnn": torch_.backends.cudnn.m,
        "torch.backends.cudnn class": type(torch.backends.cudnn),
        "torch.autograd.profiler.profile": torch.autograd.profiler.profile,
        "torch.autograd.profiler.emit_nvtx": torch.autograd.profiler.emit_nvtx,
        "torch.profiler": torch.profiler,
        "torch.profiler.profiler": torch.profiler.profiler,
    }
    if hasattr(torch, "accelerator"):
        spaces["torch.accelerator"] = torch.accelerator
    return {name: dict(vars(space)) for name, space in spaces.items()}

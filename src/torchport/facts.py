"""Facts: what is true of one machine. None means that nobody could look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The machine itself. ``system`` and ``machine`` are as ``platform`` gives them: "Linux", "x86_64"."""

    system: str | None = None
    machine: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """One Python interpreter and the torch in it. ``version`` None: this Python has no torch.

    ``cuda`` is the CUDA version that the wheel was built for, None for a CPU wheel.
    """

    python: str
    python_version: tuple[int, int, int]
    version: str | None = None
    cuda: str | None = None
    numpy_version: str | None = None


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """NVIDIA's kernel driver: its ``version``, "580.95.05"."""

    version: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of one machine. ``gpus``: names or device files of real cards, empty for none."""

    host: HostFacts = HostFacts()
    torch: TorchFacts | None = None
    gpus: tuple[str, ...] | None = None
    driver: DriverFacts | None = None

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

    ``cuda`` is the CUDA version that the wheel was built for, None for a CPU wheel. ``torchrun`` are the options
    that its torchrun takes, without dashes in front: ("nnodes", "max-restarts", …).
    """

    python: str
    python_version: tuple[int, int, int]
    version: str | None = None
    cuda: str | None = None
    numpy_version: str | None = None
    torchrun: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that computes on a card. What the system does not tell is None.

    A run that has taken the card and may not compute on it yet has no ``pid``, and its folder as ``command``.
    """

    pid: int | None
    memory_bytes: int | None = None
    user: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One NVIDIA card as its driver sees it. ``index`` counts in the order of the PCI bus, as nvidia-smi does.

    ``holders`` is None where the driver does not tell; in a container it may be empty though others compute on
    the card. ``mig``: the card is divided into instances. ``prohibited``: its owner allows no computing.
    """

    index: int
    uuid: str
    name: str
    memory_bytes: int | None = None
    used_bytes: int | None = None
    capability: tuple[int, int] | None = None
    mig: bool = False
    prohibited: bool = False
    holders: tuple[Holder, ...] | None = None


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """NVIDIA's driver: its ``version``, "580.95.05". ``cuda`` is the newest CUDA that it can run, (12, 8) say."""

    version: str | None = None
    cuda: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of one machine. ``gpus``: names or device files of real cards, empty for none.

    ``driver`` and ``cards`` are looked up only for a command that needs them.
    """

    host: HostFacts = HostFacts()
    torch: TorchFacts | None = None
    gpus: tuple[str, ...] | None = None
    driver: DriverFacts | None = None
    cards: tuple[Card, ...] | None = None

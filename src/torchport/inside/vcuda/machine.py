"""The virtual machine: which GPUs it has, what each holds, and which is current."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchport.hardware.gpus import GpuSpec
from torchport.inside.places import Place, Places

if TYPE_CHECKING:
    from torchport.inside.vcuda.faults import Faults


class Gpu:
    """One virtual card. Byte counters follow torch.cuda.memory_allocated: live tensor bytes, rounded to 512."""

    __slots__ = (
        "allocated",
        "allocations",
        "cached",
        "capacity_bytes",
        "context_bytes",
        "events",
        "fraction",
        "frees",
        "index",
        "limit_bytes",
        "ooms",
        "peak",
        "peak_kept",
        "reserved_peak",
        "spec",
        "total_allocated",
        "total_freed",
    )

    def __init__(self, index: int, spec: GpuSpec) -> None:
        self.index = index
        self.spec = spec
        self.capacity_bytes = spec.memory_bytes
        self.context_bytes = spec.assumed_context_bytes
        self.allocated = 0
        # The peak since the counters were last folded (memory.py), and what the time before contributes to
        # torch's max_memory_allocated, memory_reserved and max_memory_reserved.
        self.peak = 0
        self.peak_kept = 0
        self.cached = 0
        self.reserved_peak = 0
        self.allocations = 0
        self.frees = 0
        self.total_allocated = 0
        self.total_freed = 0
        self.ooms = 0
        # (origin, ±bytes) since the recorder last looked: what held the memory at a peak is replayed from it.
        self.events: list[tuple[Any, int]] = []
        self.restrict(1.0)

    def restrict(self, fraction: float) -> None:
        """Sets PyTorch's share of the card: torch.cuda.set_per_process_memory_fraction.

        ``limit_bytes``, what tensors can take, is that share or the card without the context.
        """
        self.fraction = fraction
        self.limit_bytes = min(self.capacity_bytes - self.context_bytes, int(fraction * self.capacity_bytes))


@dataclass(frozen=True, slots=True)
class Options:
    """How the virtual machine behaves.

    ``backing`` is "cpu" (real numbers in host memory) or "meta" (shapes only); ``strict`` raises where CUDA
    would, otherwise faults are recorded, healed and passed; ``project`` is the folder whose frames count as the
    user's.
    """

    gpus: int = 1
    strict: bool = False
    backing: str = "cpu"
    project: str = "."


class Local(threading.local):
    """What belongs to one thread."""

    current = 0  # index of the current GPU
    pending: int | None = None  # device of the tensors that the factory being called makes
    quiet = 0  # above zero while torch's own Python does what CUDA would not do: no syncs are counted
    waiter: str | None = None  # whose waits these are, where that is not the operator
    in_backward = 0
    barrier = -2  # card of the barrier being called, as far as its caller says
    replica = -2  # card of the module that DistributedDataParallel works on now
    objects = 0  # above zero while a collective of objects runs that may use the host
    scale: float | None = None  # what the sums of the collective being called are multiplied by
    raw = 0  # above zero while an operator without numbers runs: devices are the physical ones


class Machine:
    """State shared by all parts of the virtual device in one process."""

    def __init__(self, spec: GpuSpec, options: Options) -> None:
        self.options = options
        self.spec = spec
        self.gpus = tuple(Gpu(index, spec) for index in range(options.gpus))
        self.pid = os.getpid()
        self.initialized = False  # becomes true at the first use of the device, as the CUDA context does
        self.forked = False  # true in a child forked after that: any use raises
        self.in_child = False  # true in any forked child
        self.poisoned: Exception | None = None  # a device-side assert: every later use of the device raises it
        self.clock_s = 0.0  # simulated device clock, for events
        # The cards that CUDA_VISIBLE_DEVICES leaves, by physical index; read once, at the first question.
        self.visible: tuple[int, ...] | None = None
        self.default_cuda = False  # torch.set_default_tensor_type(torch.cuda.FloatTensor)
        self.sync_debug_mode = 0  # 0 off, 1 warn, 2 raise: torch.cuda.set_sync_debug_mode
        self.on_sync: Callable[[str], None] | None = None
        self.collective: Callable[[Any, Any, Any, Any], Any] | None = None  # takes the operators of c10d
        self.on_collective: Callable[[Any, str], None] | None = None  # a call, and "enter" or "leave"
        self.oom_observers: list[Callable[[int, int, int, int], Any]] = []
        self.sync_count = 0
        self.syncs: dict[tuple[Place | None, str], int] = {}
        # (place, direction, pinned, non_blocking) -> (count, bytes)
        self.transfers: dict[tuple[Place | None, str, bool, bool], tuple[int, int]] = {}
        self.moved = {"h2d": [0, 0], "d2h": [0, 0], "d2d": [0, 0]}  # count and bytes since the last step
        # place -> tag and state of the tensor last sent to a card from there, and how often in a row
        self.sent: dict[Place | None, tuple[Any, Any, int]] = {}
        self.draws: dict[tuple[Place | None, str], int] = {}  # random numbers drawn on the device
        self.step = 0
        self.healed = False  # a forward fault was healed: what backward meets may follow from it
        self.generator_for: Callable[[Any, int], Any]  # set by generators.py
        self.places = Places(options.project)
        self.local = Local()
        self.faults: Faults  # set by the session
        self.convert_type: Callable[..., Any]  # x.type(…), set by legacy.py

    @property
    def current(self) -> int:
        """Index of this thread's current GPU."""
        return self.local.current

    @current.setter
    def current(self, index: int) -> None:
        self.local.current = index

    def admit(self, device: int, nbytes: int) -> None:
        """Refuses a storage of ``nbytes`` that ``device`` cannot hold, or in a process that may not use CUDA.

        Raises torch.OutOfMemoryError with CUDA's text, or RuntimeError in a child forked after initialisation.
        """
        if not self.initialized or self.forked:
            from torchport.inside.vcuda.cuda import ensure_initialized

            ensure_initialized(self)
        gpu = self.gpus[device]
        if gpu.allocated + nbytes > gpu.limit_bytes:
            from torchport.inside.vcuda.oom import raise_oom

            raise_oom(self, gpu, nbytes)

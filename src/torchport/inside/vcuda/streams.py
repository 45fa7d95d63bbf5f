"""Streams and events. Work on a virtual card is done when its call returns, so nothing is ever waited for.

Events read the host's clock, moved on by what was simulated (``Machine.clock_s``): ``elapsed_time`` is the
time that the rehearsal took, not a prediction.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import time
from types import ModuleType
from typing import Any, ClassVar

import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.cuda import CUDA_TYPE, check_index, device_count, ensure_initialized
from torchport.inside.vcuda.cuda_errors import cuda_error, not_simulated, remark
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

RawStream: Any = torch.Stream
RawEvent: Any = torch.Event

# c10 numbers streams as (place in a pool of 32, kind, 1): kind 1 has priority 0, kind 2 priority -1 …
# 0 is the default stream; an even number is the address of a stream made elsewhere.
_POOL = 32
_GREATEST_PRIORITY = -3
_HANDLES = 0x5500_0000_0000  # where the made-up cudaStream_t and cudaEvent_t lie
_SHARED_EVENT = "an event shared between processes"


def install(patches: Patches, machine: Machine) -> None:
    """Current streams, ``torch.cuda.Stream``, ``torch.cuda.Event`` and what waits for them."""
    _current(patches, machine)
    _synchronize(patches, machine)
    _classes(patches, machine)
    _record_stream(patches)


def synced(machine: Machine, name: str) -> None:
    """Reports that the host waits for the device."""
    if machine.on_sync is not None:
        machine.on_sync(name)


def stream_ids(machine: Machine) -> dict[int, int]:
    """This thread's current stream on each card; a card that is missing has its default stream."""
    ids: dict[int, int] = machine.local.__dict__.setdefault("streams", {})
    return ids


def check_stream_device(machine: Machine, index: int) -> int:
    """c10's own check of an index that reached the stream functions."""
    ensure_initialized(machine)
    count = device_count(machine)
    if 0 <= index < count:
        return index
    if TORCH >= (2, 8):
        raise RuntimeError(f"Device index value {index} is out of index range [0, {count})")
    file = "/pytorch/c10/cuda/CUDAStream.cpp" if TORCH >= (2, 6) else "../c10/cuda/CUDAStream.cpp"
    raise RuntimeError(
        f'device_index >= 0 && device_index < num_gpus INTERNAL ASSERT FAILED at "{file}":247, '
        "please report a bug to PyTorch. "
    )


def _current(patches: Patches, machine: Machine) -> None:
    def data(index: int, stream_id: int) -> tuple[int, int, int]:
        return stream_id, index, CUDA_TYPE

    def index_of(index: int) -> int:
        return check_stream_device(machine, machine.current if index == -1 else index)

    def current(index: int) -> tuple[int, int, int]:
        index = index_of(index)
        return data(index, stream_ids(machine).get(index, 0))

    def set_stream(stream_id: int = 0, device_index: int = 0, device_type: int = CUDA_TYPE) -> None:
        machine.current = check_index(machine, device_index)
        stream_ids(machine)[device_index] = stream_id

    c = torch._C
    patches.set(c, "_cuda_getCurrentStream", current)
    patches.set(c, "_cuda_getCurrentRawStream", lambda index: handle(current(index)[0], current(index)[1]))
    patches.set(c, "_cuda_getDefaultStream", lambda index: data(index_of(index), 0))
    patches.set(c, "_cuda_getStreamFromExternal", lambda pointer, index: data(index_of(index), pointer))
    patches.set(c, "_cuda_setStream", set_stream)


def _synchronize(patches: Patches, machine: Machine) -> None:
    def synchronize() -> None:
        ensure_initialized(machine)
        synced(machine, "torch.cuda.synchronize")

    def set_mode(mode: int) -> None:
        if mode not in (0, 1, 2):
            raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
        machine.sync_debug_mode = mode

    def sleep(cycles: int) -> None:
        ensure_initialized(machine)
        machine.clock_s += cycles / (machine.spec.boost_clock_hz or 1e9)

    patches.set(torch._C, "_cuda_synchronize", synchronize)
    patches.set(torch._C, "_cuda_set_sync_debug_mode", set_mode)
    patches.set(torch._C, "_cuda_get_sync_debug_mode", lambda: machine.sync_debug_mode)
    patches.set(torch._C, "_cuda_sleep", sleep)


def handle(stream_id: int, index: int) -> int:
    """The ``cudaStream_t`` of a stream: 0 for the default one, the address itself for one made elsewhere."""
    if stream_id == 0 or not stream_id & 1:
        return stream_id
    return _HANDLES + (index << 32) + (stream_id << 4)


def _classes(patches: Patches, machine: Machine) -> None:
    """torch's own ``Stream`` and ``Event``, over our bases instead of those of a CUDA build."""
    handles = itertools.count(_HANDLES + (1 << 44), 64)
    stream = type("_CudaStreamBase", (StreamBase,), {"machine": machine, "counters": {}})
    event = type("_CudaEventBase", (EventBase,), {"machine": machine, "handles": handles})
    patches.set(torch._C, "_CudaStreamBase", stream)
    patches.set(torch._C, "_CudaEventBase", event)
    module = _fresh("torch.cuda.streams")
    patches.set_item(sys.modules, "torch.cuda.streams", module)
    patches.set(torch.cuda, "streams", module)
    for name in ("Stream", "ExternalStream", "Event"):
        patches.set(torch.cuda, name, getattr(module, name))


def _fresh(name: str) -> ModuleType:
    """A second copy of a loaded module, made from its source and not registered."""
    spec = importlib.util.spec_from_file_location(name, sys.modules[name].__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StreamBase(RawStream):
    """What stands below torch.cuda.Stream; ``machine`` and ``counters`` belong to a session's subclass."""

    machine: ClassVar[Machine]
    counters: ClassVar[dict[tuple[int, int], itertools.count[int]]]

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int = 0,
        device_type: int = 0,
        stream_ptr: int = 0,
    ) -> Any:
        ensure_initialized(cls.machine)
        if not (stream_id or device_index or device_type):
            device_index = cls.machine.current
            stream_id = stream_ptr or cls._from_pool(device_index, priority)
        return super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=CUDA_TYPE)

    @classmethod
    def _from_pool(cls, index: int, priority: int) -> int:
        priority = min(0, max(_GREATEST_PRIORITY, priority))
        place = next(cls.counters.setdefault((index, priority), itertools.count())) % _POOL
        return place << 5 | (1 - priority) << 1 | 1

    @property
    def cuda_stream(self) -> int:
        return handle(self.stream_id, self.device_index)

    @property
    def priority(self) -> int:
        return 1 - (self.stream_id >> 1 & 15) if self.stream_id & 1 else 0

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, _GREATEST_PRIORITY

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        synced(self.machine, "torch.cuda.Stream.synchronize")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RawStream):
            return False
        return bool((self.stream_id, self.device) == (other.stream_id, other.device))

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))

    if hasattr(RawStream, "__enter__"):  # since 2.7

        def __enter__(self) -> Any:
            ids = stream_ids(self.machine)
            before = self.__dict__.setdefault("_before", [])
            before.append((self.machine.current, ids.get(self.device_index, 0)))
            self.machine.current = self.device_index
            ids[self.device_index] = self.stream_id
            return self

        def __exit__(self, *error: object) -> None:
            self.machine.current, stream_id = self._before.pop()
            stream_ids(self.machine)[self.device_index] = stream_id


class EventBase(RawEvent):
    """What stands below torch.cuda.Event."""

    machine: ClassVar[Machine]
    handles: ClassVar[itertools.count[int]]
    _timing: bool
    _index: int | None  # the card is known once the event was recorded
    _handle: int
    _time_s: float
    _syncs_before: int

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Any:
        self = super().__new__(cls)
        self._timing = enable_timing
        self._index = None
        self._handle = 0
        return self

    @property
    def device(self) -> torch.device | None:
        return None if self._index is None else torch.device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        return self._handle

    event_id = cuda_event

    def record(self, stream: Any = None) -> None:
        index = self.machine.current if stream is None else stream.device_index
        ensure_initialized(self.machine)
        if self._index is None:
            self._index = index
            self._handle = next(self.handles)
        elif self._index != index:
            raise RuntimeError(f"Event device {self._index} does not match recording stream's device {index}.")
        self._time_s = time.perf_counter() + self.machine.clock_s
        self._syncs_before = self.machine.sync_count

    def wait(self, stream: Any = None) -> None:
        ensure_initialized(self.machine)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        synced(self.machine, "torch.cuda.Event.synchronize")

    def elapsed_time(self, end: Any) -> float:
        _check_timed(self.machine, self, end)
        return float(end._time_s - self._time_s) * 1e3

    def ipc_handle(self) -> bytes:
        not_simulated(self.machine, "R507", _SHARED_EVENT, "synchronise on the host instead")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Any:
        not_simulated(cls.machine, "R507", _SHARED_EVENT, "synchronise on the host instead")

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'Event' object")


def _check_timed(machine: Machine, start: Any, end: Any) -> None:
    kind: type[Exception] = ValueError if TORCH >= (2, 8) else RuntimeError
    if TORCH >= (2, 8) and not (start._timing and end._timing):
        raise kind("Both events must be created with argument 'enable_timing=True'.")
    if start._index is None or end._index is None:
        raise kind("Both events must be recorded before calculating elapsed time.")
    if not (start._timing and end._timing):
        raise cuda_error("invalid resource handle", "cudaErrorInvalidResourceHandle")
    if machine.sync_count == end._syncs_before:
        says = "Both events must be completed before calculating elapsed time."
        text = f"elapsed_time() without waiting for the end event: CUDA may say «{says}»"
        remark(machine, "R204", "elapsed_time", text)
    remark(machine, "R505", "elapsed_time", "elapsed_time() measured the host, not a GPU")


def _record_stream(patches: Patches) -> None:
    raw = torch.Tensor.record_stream

    def record_stream(self: Any, stream: Any) -> None:
        if not self.is_cuda:
            raw(self, stream)

    patches.set(torch.Tensor, "record_stream", record_stream)

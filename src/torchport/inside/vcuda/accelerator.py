"""torch.accelerator, torch.Stream and torch.Event: the accelerator is the virtual card."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda.cuda import CUDA_TYPE, check_index, device_count, ensure_initialized
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.memory import empty_cache, free_bytes
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.streams import RawEvent, RawStream, stream_ids, synced


def install(patches: Patches, machine: Machine) -> None:
    """Needs streams.py and memory.py installed before."""
    device = torch.device("cuda")
    for name in ("_get_accelerator", "_accelerator_getAccelerator"):
        patches.set(torch._C, name, lambda *args: device)
    _devices(patches, machine)
    _streams(patches, machine)
    _memory(patches, machine)
    _classes(patches, machine)
    capability = getattr(getattr(torch, "accelerator", None), "get_device_capability", None)
    if capability is not None:
        capability.cache_clear()
        patches.on_undo(capability.cache_clear)


def _devices(patches: Patches, machine: Machine) -> None:
    def get_index() -> int:
        ensure_initialized(machine)
        return machine.current

    def exchange(index: int) -> int:
        if index < 0:
            return -1
        before, machine.current = get_index(), check_index(machine, index)
        return before

    def set_index(index: int) -> None:
        exchange(index)

    c = torch._C
    patches.set(c, "_accelerator_deviceCount", lambda: device_count(machine))
    patches.set(c, "_accelerator_getDeviceIndex", get_index)
    patches.set(c, "_accelerator_setDeviceIndex", set_index)
    patches.set(c, "_accelerator_exchangeDevice", exchange)
    patches.set(c, "_accelerator_maybeExchangeDevice", exchange)
    patches.set(c, "_accelerator_getDeviceCapability", lambda index: {"supported_dtypes": set(_dtypes())})


def _dtypes() -> list[torch.dtype]:
    names = (
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool bfloat16 "
        "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
    )
    return [getattr(torch, name) for name in names.split() if hasattr(torch, name)]


def _streams(patches: Patches, machine: Machine) -> None:
    def set_stream(stream: Any) -> None:
        machine.current = check_index(machine, stream.device_index)
        stream_ids(machine)[stream.device_index] = stream.stream_id

    def synchronize(index: int) -> None:
        check_index(machine, index)
        synced(machine, "torch.accelerator.synchronize")

    patches.set(torch._C, "_accelerator_getStream", lambda index: torch.cuda.current_stream(index))
    patches.set(torch._C, "_accelerator_setStream", set_stream)
    patches.set(torch._C, "_accelerator_synchronizeDevice", synchronize)


def _memory(patches: Patches, machine: Machine) -> None:
    def info(index: int) -> tuple[int, int]:
        gpu = machine.gpus[check_index(machine, index)]
        return free_bytes(gpu), gpu.capacity_bytes

    def empty_all() -> None:
        for gpu in machine.gpus:
            empty_cache(gpu)

    c: Any = torch._C
    patches.set(c, "_accelerator_isAllocatorInitialized", lambda: machine.initialized)
    patches.set(c, "_accelerator_emptyCache", empty_all)
    patches.set(c, "_accelerator_emptyHostCache", lambda: None)
    patches.set(c, "_accelerator_getMemoryInfo", info)
    patches.set(c, "_accelerator_getDeviceStats", c._cuda_memoryStats)
    patches.set(c, "_accelerator_resetPeakStats", c._cuda_resetPeakMemoryStats)
    patches.set(c, "_accelerator_resetAccumulatedStats", c._cuda_resetAccumulatedMemoryStats)

    def generator(index: int) -> Any:
        return torch.cuda.default_generators[check_index(machine, index)]

    patches.set(c, "_accelerator_getDefaultGenerator", generator)


def _classes(patches: Patches, machine: Machine) -> None:
    """``torch.Stream("cuda")`` and ``torch.Event("cuda")`` give those of torch.cuda; else torch's own."""
    cuda: Any = torch.cuda

    def on_card(device: Any) -> torch.device | None:
        if device is None or isinstance(device, int):
            return torch.device("cuda", machine.current if device is None else device)
        device = torch.device(device)
        return device if device.type == "cuda" else None

    def new_stream(cls: Any, device: Any = None, *rest: Any, priority: int = 0, **ids: Any) -> Any:
        if ids.get("device_type") == CUDA_TYPE:
            return cuda.Stream(**ids)
        if ids or rest:
            return RawStream(*(() if device is None else (device,)), *rest, **ids)
        card = on_card(device)
        return RawStream(device, priority=priority) if card is None else cuda.Stream(card, priority=priority)

    def new_event(cls: Any, device: Any = None, **flags: Any) -> Any:
        return RawEvent(device, **flags) if on_card(device) is None else cuda.Event(**flags)

    for name, raw, new in (("Stream", RawStream, new_stream), ("Event", RawEvent, new_event)):
        patches.set(torch, name, _substitute(name, raw, new))


def _substitute(name: str, raw: Any, new: Any) -> type:
    """A class called ``torch.{name}`` that ``new`` makes the objects of; all of ``raw`` are its instances."""

    class Kind(type(raw)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, raw)

        def __subclasscheck__(cls, subclass: Any) -> bool:
            return issubclass(subclass, raw)

    return Kind(name, (raw,), {"__new__": new, "__module__": "torch"})

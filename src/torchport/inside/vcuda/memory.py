"""torch.cuda.memory: what a card holds.

Until the caching allocator is modelled, one rule stands for it: what was allocated at most since the last
``empty_cache`` stays reserved, in whole segments of 2 MiB.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from torchport.inside.vcuda.cuda import check_index, ensure_initialized
from torchport.inside.vcuda.cuda_errors import not_simulated
from torchport.inside.vcuda.machine import Gpu, Machine
from torchport.inside.vcuda.patches import Patches

_SEGMENT_BYTES = 2 << 20
_BLOCK_BYTES = 512
_BASE_ADDRESS = 0x7F00_0000_0000  # where a fresh process sees its first device memory


def reserved_bytes(gpu: Gpu) -> int:
    """Bytes that the allocator holds: the most that was allocated since the cache was last emptied."""
    return -(-max(gpu.cached, gpu.peak) // _SEGMENT_BYTES) * _SEGMENT_BYTES


def peak_allocated_bytes(gpu: Gpu) -> int:
    """``torch.cuda.max_memory_allocated``."""
    return max(gpu.peak_kept, gpu.peak)


def peak_reserved_bytes(gpu: Gpu) -> int:
    """``torch.cuda.max_memory_reserved``."""
    return max(gpu.reserved_peak, reserved_bytes(gpu))


def free_bytes(gpu: Gpu) -> int:
    """What the driver reports as free: neither reserved nor taken by the context."""
    return max(0, gpu.capacity_bytes - gpu.context_bytes - reserved_bytes(gpu))


def empty_cache(gpu: Gpu) -> None:
    """Gives back what is reserved and not allocated; the peaks stay."""
    gpu.reserved_peak = peak_reserved_bytes(gpu)
    gpu.peak_kept = peak_allocated_bytes(gpu)
    gpu.cached = 0
    gpu.peak = gpu.allocated


def reset_peaks(gpu: Gpu) -> None:
    """``torch.cuda.reset_peak_memory_stats``; what is reserved stays so."""
    gpu.cached = max(gpu.cached, gpu.peak)
    gpu.reserved_peak = 0
    gpu.peak_kept = 0
    gpu.peak = gpu.allocated


def stats(gpu: Gpu) -> dict[str, Any]:
    """The nested dictionary of ``torch.cuda.memory_stats``; pools are not told apart."""
    reserved, reserved_peak = reserved_bytes(gpu), peak_reserved_bytes(gpu)
    live = gpu.allocations - gpu.frees
    tensors = _stat(gpu.allocated, peak_allocated_bytes(gpu), gpu.total_allocated, gpu.total_freed)
    blocks = _stat(live, live, gpu.allocations, gpu.frees)
    segments = _stat(int(reserved > 0), int(reserved_peak > 0), int(reserved_peak > 0), 0)
    held = _stat(reserved, reserved_peak, reserved_peak, reserved_peak - reserved)
    unused = _stat(reserved - gpu.allocated, reserved - gpu.allocated, 0, 0)
    pools = {
        "allocation": blocks,
        "active": blocks,
        "segment": segments,
        "inactive_split": _stat(0, 0, 0, 0),
        "allocated_bytes": tensors,
        "requested_bytes": tensors,
        "active_bytes": tensors,
        "reserved_bytes": held,
        "inactive_split_bytes": unused,
    }
    return {
        **{name: _pools(stat) for name, stat in pools.items()},
        "oversize_allocations": _stat(0, 0, 0, 0),
        "oversize_segments": _stat(0, 0, 0, 0),
        "num_alloc_retries": gpu.ooms,
        "num_ooms": gpu.ooms,
        "num_oom_rejections": 0,
        "num_sync_all_streams": gpu.ooms,
        "num_device_alloc": int(reserved_peak > 0),
        "num_device_free": 0,
        "max_split_size": -1,
        "reserved_bytes_by_private_pools": {},
    }


def _stat(current: int, peak: int, allocated: int, freed: int) -> dict[str, int]:
    return {"current": current, "peak": peak, "allocated": allocated, "freed": freed}


def _pools(stat: dict[str, int]) -> dict[str, dict[str, int]]:
    return {"all": stat, "small_pool": _stat(0, 0, 0, 0), "large_pool": dict(stat)}


def snapshot(machine: Machine) -> dict[str, Any]:
    """torch's memory snapshot with one segment a card: what is allocated, and what is cached behind it."""
    segments = [_segment(gpu) for gpu in machine.gpus if reserved_bytes(gpu)]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}
    return {
        "segments": segments,
        "device_traces": [[] for _ in machine.gpus],
        "allocator_settings": settings,
        "external_annotations": [],
        "host_segments": [],
        "host_traces": [],
    }


def _segment(gpu: Gpu) -> dict[str, Any]:
    total = reserved_bytes(gpu)
    address = _BASE_ADDRESS + gpu.index * (1 << 40)
    sizes = ((gpu.allocated, "active_allocated"), (total - gpu.allocated, "inactive"))
    starts = (address, address + gpu.allocated)
    blocks = [
        {"size": size, "requested_size": size, "address": start, "state": state, "frames": []}
        for start, (size, state) in zip(starts, sizes, strict=True)
        if size
    ]
    return {
        "device": gpu.index,
        "address": address,
        "total_size": total,
        "allocated_size": gpu.allocated,
        "active_size": gpu.allocated,
        "requested_size": gpu.allocated,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


class RawBlocks:
    """Memory that a script takes from the allocator by hand. Nothing lies at its addresses."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._sizes: dict[int, tuple[Gpu, int]] = {}
        self._next = itertools.count(_BASE_ADDRESS, 1 << 32)

    def allocate(self, size: int, stream: int) -> int:
        size = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
        gpu = self.machine.gpus[self.machine.current]
        self.machine.admit(gpu.index, size)
        gpu.allocated += size
        gpu.total_allocated += size
        gpu.allocations += 1
        gpu.peak = max(gpu.peak, gpu.allocated)
        address = next(self._next)
        self._sizes[address] = (gpu, size)
        return address

    def free(self, address: int) -> None:
        if address not in self._sizes:
            raise RuntimeError(f"invalid device pointer: {address:#x}")
        gpu, size = self._sizes.pop(address)
        gpu.allocated -= size
        gpu.total_freed += size
        gpu.frees += 1


def install(patches: Patches, machine: Machine) -> None:
    """Everything below torch.cuda.memory."""
    _statistics(patches, machine)
    _limits(patches, machine)
    _by_hand(patches, machine)
    _history(patches, machine)


def _statistics(patches: Patches, machine: Machine) -> None:
    def gpu_at(index: int) -> Gpu:
        return machine.gpus[check_index(machine, index)]

    def empty_all() -> None:
        for gpu in machine.gpus:
            empty_cache(gpu)

    def reset_accumulated(index: int) -> None:
        gpu = gpu_at(index)
        gpu.total_allocated = gpu.total_freed = gpu.ooms = 0
        gpu.allocations -= gpu.frees
        gpu.frees = 0

    def host_stats() -> dict[str, Any]:
        names = ("allocations", "active_requests", "allocated_bytes", "active_bytes")
        times = {"total": 0, "max": 0, "min": 0, "count": 0, "avg": 0}
        return {
            "num_host_alloc": 0,
            "num_host_free": 0,
            **{name: _stat(0, 0, 0, 0) for name in names},
            "host_alloc_time": times,
            "host_free_time": times,
        }

    c = torch._C
    patches.set(c, "_cuda_memoryStats", lambda index: stats(gpu_at(index)))
    patches.set(c, "_cuda_resetPeakMemoryStats", lambda index: reset_peaks(gpu_at(index)))
    patches.set(c, "_cuda_resetAccumulatedMemoryStats", reset_accumulated)
    patches.set(c, "_cuda_emptyCache", empty_all)
    patches.set(c, "_cuda_memorySnapshot", lambda pool=None: snapshot(machine))
    patches.set(c, "_cuda_hostMemoryStats", host_stats)
    patches.set(c, "_cuda_resetAccumulatedHostMemoryStats", lambda: None)
    patches.set(c, "_cuda_resetPeakHostMemoryStats", lambda: None)
    patches.set(c, "_cuda_ipc_collect", lambda: ensure_initialized(machine))


def _limits(patches: Patches, machine: Machine) -> None:
    def set_fraction(fraction: float, index: int) -> None:
        machine.gpus[check_index(machine, index)].restrict(fraction)

    original = torch.cuda.list_gpu_processes

    def list_processes(device: Any = None) -> str:
        if not torch.cuda._HAS_PYNVML:
            return original(device)
        index = torch.cuda._utils._get_device_index(device, optional=True)
        gpu = machine.gpus[check_index(machine, index)]
        used_mib = (reserved_bytes(gpu) + gpu.context_bytes) / (1 << 20)
        return f"GPU:{index}\nprocess {machine.pid:>10d} uses {used_mib:>12.3f} MB GPU memory"

    patches.set(torch._C, "_cuda_setMemoryFraction", set_fraction)
    patches.set(torch._C, "_cuda_getMemoryFraction", lambda index: machine.gpus[check_index(machine, index)].fraction)
    for module in (torch.cuda, torch.cuda.memory):
        patches.set(module, "list_gpu_processes", list_processes)


def _by_hand(patches: Patches, machine: Machine) -> None:
    """The allocator taken in hand: raw blocks, pools, pluggable allocators."""
    raw = RawBlocks(machine)
    enabled = [True]

    def no_custom(*args: Any) -> None:
        not_simulated(machine, "R502", "a pluggable CUDA allocator", "use the default allocator in a rehearsal")

    c: Any = torch._C
    patches.set(c, "_cuda_cudaCachingAllocator_raw_alloc", raw.allocate)
    patches.set(c, "_cuda_cudaCachingAllocator_raw_delete", raw.free)
    patches.set(c, "_cuda_cudaCachingAllocator_enable", lambda value: enabled.__setitem__(0, bool(value)))
    patches.set(c, "_cuda_cudaCachingAllocator_is_enabled", lambda: enabled[0])
    patches.set(c, "_cuda_cudaCachingAllocator_set_allocator_settings", lambda settings: None)
    patches.set(c, "_cuda_getAllocatorBackend", lambda: "native")
    patches.set(c, "_cuda_cudaHostAllocator", lambda: _BASE_ADDRESS - 1)
    patches.set(c, "_cuda_getAllocator", lambda: None)
    patches.set(c, "_cuda_customAllocator", no_custom)
    patches.set(c, "_cuda_changeCurrentAllocator", no_custom)
    _pools_by_hand(patches)


def _pools_by_hand(patches: Patches) -> None:
    identities = itertools.count(1)

    class MemPool:
        """A pool of memory: all pools share the one memory of a virtual card."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.id = (0, next(identities))
            self.allocator = kwargs.get("allocator", args[0] if args else None)

        def use_count(self) -> int:
            return 1

        def snapshot(self, include_traces: bool = True) -> list[Any]:
            return []

    memory: Any = torch.cuda.memory
    names = (
        "_cuda_beginAllocateToPool",
        "_cuda_beginAllocateCurrentThreadToPool",
        "_cuda_beginAllocateCurrentStreamToPool",
        "_cuda_endAllocateToPool",
        "_cuda_endAllocateCurrentStreamToPool",
        "_cuda_releasePool",
    )
    for name in names:
        patches.set(torch._C, name, lambda *args: None)
        if hasattr(memory, name):
            patches.set(memory, name, lambda *args: None)
    for module in (torch.cuda, memory):
        if hasattr(module, "MemPool"):
            patches.set(module, "MemPool", MemPool)


def _history(patches: Patches, machine: Machine) -> None:
    """Recording of allocations: accepted, the rehearsal's own record has them."""
    recording = [False]
    metadata = [""]

    def record(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
        recording[0] = bool(enabled)

    c = torch._C
    patches.set(c, "_cuda_record_memory_history", record)
    patches.set(c, "_cuda_record_memory_history_legacy", record)
    patches.set(c, "_cuda_isHistoryEnabled", lambda: recording[0])
    patches.set(c, "_cuda_allocationTraceback", lambda address: None)
    patches.set(c, "_cuda_setMemoryMetadata", lambda text: metadata.__setitem__(0, text))
    patches.set(c, "_cuda_getMemoryMetadata", lambda: metadata[0])
    patches.set(c, "_cuda_attach_out_of_memory_observer", machine.oom_observers.append)

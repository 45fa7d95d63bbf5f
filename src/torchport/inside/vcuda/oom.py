"""CUDA out of memory, in the words of the installed torch."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Gpu, Machine
from torchport.inside.vcuda.memory import empty_cache, reserved_bytes

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
_ONE_EXABYTE = 1152921504606846976  # the allocator's own limit for one request


def format_size(size: int) -> str:
    """A size as CUDA's messages print it: up to and including 1024 of a unit in that unit."""
    if size <= KIB:
        return f"{size} bytes"
    for limit, unit, name in ((MIB, KIB, "KiB"), (GIB, MIB, "MiB")):
        if size <= limit:
            return f"{size / unit:.2f} {name}"
    return f"{size / GIB:.2f} GiB"


def segment_bytes(requested_bytes: int) -> int:
    """What the caching allocator asks the driver for, for one request that no cached block serves."""
    if requested_bytes <= MIB:
        return 2 * MIB
    if requested_bytes < 10 * MIB:
        return 20 * MIB
    return -(-requested_bytes // (2 * MIB)) * 2 * MIB


def out_of_memory_text(gpu: Gpu, requested_bytes: int, version: tuple[int, ...] = TORCH) -> str:
    """The message for a request that ``gpu`` cannot serve."""
    if requested_bytes >= _ONE_EXABYTE:
        return "CUDA out of memory. Tried to allocate more than 1EB memory."
    reserved = reserved_bytes(gpu)
    used = reserved + gpu.context_bytes
    allowed = ""
    if gpu.fraction < 1:
        allowed = f"{format_size(int(gpu.fraction * gpu.capacity_bytes))} allowed; "
    total, free = format_size(gpu.capacity_bytes), format_size(max(0, gpu.capacity_bytes - used))
    allocated, cached = format_size(gpu.allocated), format_size(reserved - gpu.allocated)
    return (
        f"CUDA out of memory. Tried to allocate {format_size(segment_bytes(requested_bytes))}. "
        f"GPU {gpu.index} has a total capacity of {total} of which {free} is free. "
        f"Including non-PyTorch memory, this process has {format_size(used)} memory in use. {allowed}"
        f"Of the allocated memory {allocated} is allocated by PyTorch, "
        f"and {cached} is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting "
        f"{_setting(version)}=expandable_segments:True to avoid fragmentation.  "
        f"See documentation for Memory Management  ({_page(version)})"
    )


def _setting(version: tuple[int, ...]) -> str:
    return "PYTORCH_ALLOC_CONF" if version == (2, 10) else "PYTORCH_CUDA_ALLOC_CONF"


def _page(version: tuple[int, ...]) -> str:
    if version < (2, 11):
        return "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
    return "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"


def raise_oom(machine: Machine, gpu: Gpu, requested_bytes: int) -> NoReturn:
    """Raises torch.OutOfMemoryError, after giving back what is cached as CUDA does."""
    empty_cache(gpu)
    gpu.ooms += 1
    text = out_of_memory_text(gpu, requested_bytes)
    for observer in machine.oom_observers:
        observer(gpu.index, requested_bytes, gpu.allocated, gpu.capacity_bytes - gpu.context_bytes - gpu.allocated)
    cuda: Any = torch.cuda
    faults: Any = getattr(machine, "faults", None)
    if faults is not None:
        faults.refuse("R301", text, cuda.OutOfMemoryError, remedy="smaller", op="allocate", fatal=True)
    raise cuda.OutOfMemoryError(text)

"""Memory of a virtual card: the reserved-bytes rule, statistics, limits, the words of out-of-memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Gpu, Machine
from torchport.inside.vcuda.oom import format_size, out_of_memory_text, raise_oom, segment_bytes

cuda: Any = torch.cuda
MIB = 1 << 20
GIB = 1 << 30


def take(gpu: Gpu, size: int) -> None:
    gpu.allocated += size
    gpu.total_allocated += size
    gpu.allocations += 1
    gpu.peak = max(gpu.peak, gpu.allocated)


def give(gpu: Gpu, size: int) -> None:
    gpu.allocated -= size
    gpu.total_freed += size
    gpu.frees += 1


def held() -> tuple[int, int, int, int]:
    return (
        torch.cuda.memory_allocated(),
        torch.cuda.max_memory_allocated(),
        torch.cuda.memory_reserved(),
        torch.cuda.max_memory_reserved(),
    )


def test_reserved_is_the_peak_since_the_cache_was_emptied(machine: Machine) -> None:
    torch.cuda.init()
    gpu = machine.gpus[0]
    take(gpu, 5 * MIB)
    give(gpu, 4 * MIB)
    assert held() == (1 * MIB, 5 * MIB, 6 * MIB, 6 * MIB)
    torch.cuda.reset_peak_memory_stats()
    assert held() == (1 * MIB, 1 * MIB, 6 * MIB, 6 * MIB)
    torch.cuda.empty_cache()
    assert held() == (1 * MIB, 1 * MIB, 2 * MIB, 6 * MIB)
    take(gpu, 2 * MIB)
    assert held() == (3 * MIB, 3 * MIB, 4 * MIB, 6 * MIB)
    assert torch.cuda.memory_allocated(1) == 0


def test_counters(machine: Machine) -> None:
    torch.cuda.init()
    gpu = machine.gpus[1]
    take(gpu, 1024)
    take(gpu, 512)
    give(gpu, 512)
    stats = torch.cuda.memory_stats(1)
    names = ("allocation.all", "allocated_bytes.all")
    assert [[stats[f"{name}.{key}"] for key in ("current", "allocated", "freed")] for name in names] == [
        [1, 2, 1],
        [1024, 1536, 512],
    ]
    torch.cuda.reset_accumulated_memory_stats(1)
    assert torch.cuda.memory_stats(1)["allocated_bytes.all.allocated"] == 0


@pytest.mark.parametrize("abbreviated", [True, False])
def test_the_summary_prints(machine: Machine, abbreviated: bool) -> None:
    torch.cuda.init()
    take(machine.gpus[0], 3 * GIB)
    text = torch.cuda.memory_summary(abbreviated=abbreviated)
    assert "PyTorch CUDA memory summary, device ID 0" in text
    assert "Allocated memory      |   3072 MiB |" in text


def test_free_memory_leaves_out_the_context(machine: Machine) -> None:
    take(machine.gpus[0], 1 * GIB)
    free, total = torch.cuda.mem_get_info()
    assert total == 81152 * MIB
    assert free == total - 492 * MIB - 1 * GIB
    assert torch.cuda.mem_get_info("cuda:1")[0] == total - 492 * MIB


def test_the_share_of_a_process_is_limited(machine: Machine) -> None:
    torch.cuda.set_per_process_memory_fraction(0.25, 1)
    assert machine.gpus[1].limit_bytes == 81152 * MIB // 4
    assert machine.gpus[0].limit_bytes == (81152 - 492) * MIB
    if TORCH >= (2, 8):
        assert cuda.get_per_process_memory_fraction(1) == 0.25
    with pytest.raises(ValueError, match=r"Invalid fraction value: 1\.5"):
        torch.cuda.set_per_process_memory_fraction(1.5)


def test_memory_taken_by_hand(machine: Machine) -> None:
    address = torch.cuda.caching_allocator_alloc(1000)
    assert torch.cuda.memory_allocated() == 1024
    torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.memory_allocated() == 0
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(address)
    with pytest.raises(cuda.OutOfMemoryError):
        torch.cuda.caching_allocator_alloc(100 * GIB)


def test_a_snapshot_is_one_that_torch_can_draw(machine: Machine, tmp_path: Path) -> None:
    torch.cuda.init()
    cuda.memory._record_memory_history()
    take(machine.gpus[0], 3 * MIB)
    cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    (segment,) = snapshot["segments"]
    assert (segment["total_size"], segment["allocated_size"]) == (4 * MIB, 3 * MIB)
    assert [block["state"] for block in segment["blocks"]] == ["active_allocated", "inactive"]
    assert "total_reserved: 4.0MiB" in cuda._memory_viz.segsum(snapshot)
    cuda.memory._record_memory_history(enabled=None)
    assert torch.cuda.memory_snapshot() == snapshot["segments"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1024, "1024 bytes"),
        (1025, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (20 * MIB, "20.00 MiB"),
        (GIB, "1024.00 MiB"),
        (GIB + 1, "1.00 GiB"),
        (81152 * MIB, "79.25 GiB"),
    ],
)
def test_sizes_in_messages(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("requested", "segment"),
    [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB, 10 * MIB), (10 * MIB + 1, 12 * MIB)],
)
def test_what_is_asked_of_the_driver(requested: int, segment: int) -> None:
    assert segment_bytes(requested) == segment


OLD_PAGE = "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
NEW_PAGE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"


@pytest.mark.parametrize(
    ("version", "setting", "page"),
    [
        ((2, 4), "PYTORCH_CUDA_ALLOC_CONF", OLD_PAGE),
        ((2, 9), "PYTORCH_CUDA_ALLOC_CONF", OLD_PAGE),
        ((2, 10), "PYTORCH_ALLOC_CONF", OLD_PAGE),
        ((2, 11), "PYTORCH_CUDA_ALLOC_CONF", NEW_PAGE),
        ((2, 14), "PYTORCH_CUDA_ALLOC_CONF", NEW_PAGE),
    ],
)
def test_text_of_out_of_memory(machine: Machine, version: tuple[int, int], setting: str, page: str) -> None:
    gpu = machine.gpus[1]
    take(gpu, 78 * GIB)
    assert out_of_memory_text(gpu, 5 * GIB, version) == (
        "CUDA out of memory. Tried to allocate 5.00 GiB. GPU 1 has a total capacity of 79.25 GiB "
        "of which 788.00 MiB is free. Including non-PyTorch memory, this process has 78.48 GiB memory in "
        "use. Of the allocated memory 78.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch "
        f"but unallocated. If reserved but unallocated memory is large try setting {setting}="
        f"expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  ({page})"
    )


def test_text_with_a_limited_share(machine: Machine) -> None:
    machine.gpus[0].fraction = 0.5
    assert "memory in use. 39.62 GiB allowed; Of the allocated memory" in out_of_memory_text(machine.gpus[0], 1)


def test_absurd_requests(machine: Machine) -> None:
    text = out_of_memory_text(machine.gpus[0], 1 << 60)
    assert text == "CUDA out of memory. Tried to allocate more than 1EB memory."


def test_out_of_memory_is_raised_and_counted(machine: Machine) -> None:
    torch.cuda.init()
    seen: list[tuple[int, ...]] = []
    c: Any = torch._C
    c._cuda_attach_out_of_memory_observer(lambda *numbers: seen.append(numbers))
    gpu = machine.gpus[0]
    take(gpu, 6 * GIB)
    give(gpu, 4 * GIB)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        raise_oom(machine, gpu, 90 * GIB)
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, cuda.OutOfMemoryError)
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    assert torch.cuda.memory_reserved() == 2 * GIB  # the cache was given back first
    assert seen == [(0, 90 * GIB, 2 * GIB, (81152 - 492) * MIB - 2 * GIB)]


def test_the_machine_refuses_what_does_not_fit(machine: Machine) -> None:
    limit = machine.gpus[0].limit_bytes
    machine.admit(0, limit)
    with pytest.raises(torch.OutOfMemoryError):
        machine.admit(0, limit + 1)

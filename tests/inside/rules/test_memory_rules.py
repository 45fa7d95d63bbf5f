"""Rules 59 and 61: out of memory."""

import re

import pytest
import torch
from rule_cases import CUDA, ones

MIB = 2**20
GIB = 2**30

OUT_OF_MEMORY = re.compile(
    r"^CUDA out of memory\. Tried to allocate 100\.00 GiB\. GPU 0 has a total capacity of \d+\.\d\d GiB of "
    r"which "
    r"\d+\.\d\d [KMG]iB is free\. .*?(?P<allowed>\d+\.\d\d [MG]iB allowed; )?Of the allocated memory "
    r"\d+(\.\d\d [KMG]iB| bytes) is allocated by PyTorch, and \d+(\.\d\d [KMG]iB| bytes) is reserved by "
    r"PyTorch but "
    r"unallocated\. If reserved but unallocated memory is large try setting "
    r"PYTORCH_(CUDA_)?ALLOC_CONF=expandable_segments:True to avoid fragmentation\.  See documentation for "
    r"Memory "
    r"Management  \(https://(docs\.)?pytorch\.org/docs/stable/notes/cuda\.html\S*\)$"
)


def test_row_59_out_of_memory(session):
    ones(3, device=CUDA)
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        torch.empty(100 * GIB, dtype=torch.uint8, device=CUDA)
    assert OUT_OF_MEMORY.match(str(caught.value)), caught.value
    assert ones(3, device=CUDA).sum().item() == 3.0


def test_row_59_live_tensors_count_and_freed_ones_do_not(session):
    gpu = session.machine.gpus[0]
    gpu.capacity_bytes = 3 * GIB // 2  # a third of it is the context
    gpu.restrict(1.0)
    for _ in range(3):
        torch.empty(600 * MIB, dtype=torch.uint8, device=CUDA)
    kept = torch.empty(600 * MIB, dtype=torch.uint8, device=CUDA)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 600\.00 MiB"):
        torch.empty(600 * MIB, dtype=torch.uint8, device=CUDA)
    assert torch.empty(600 * MIB, dtype=torch.uint8, device="cuda:1").device.index == 1
    del kept
    torch.empty(600 * MIB, dtype=torch.uint8, device=CUDA)


def test_row_61_memory_fraction(session):
    torch.cuda.set_per_process_memory_fraction(0.01)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"allowed; |per_process_memory_fraction"):
        torch.empty(2 * GIB, dtype=torch.uint8, device=CUDA)

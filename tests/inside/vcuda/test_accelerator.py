"""torch.accelerator over a virtual card."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Machine

pytestmark = pytest.mark.skipif(TORCH < (2, 8), reason="torch.accelerator is new in 2.6")
acc: Any = getattr(torch, "accelerator", None)


def test_devices(machine: Machine) -> None:
    assert acc.is_available()
    assert acc.device_count() == 2
    assert acc.current_accelerator() == torch.device("cuda")
    assert acc.current_accelerator(check_available=True) == torch.device("cuda")
    acc.set_device_index(1)
    assert acc.current_device_index() == torch.cuda.current_device() == 1
    with acc.device_index(0):
        assert acc.current_device_index() == 0
    assert acc.current_device_index() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        acc.set_device_index(2)
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator cuda"):
        acc.set_device_index("cpu:0")


def test_streams(machine: Machine) -> None:
    names: list[str] = []
    machine.on_sync = names.append
    stream = torch.Stream("cuda:1")
    acc.set_stream(stream)
    assert acc.current_device_index() == 1
    assert acc.current_stream() == stream == torch.cuda.current_stream()
    assert isinstance(acc.current_stream(0), torch.Stream)
    acc.synchronize()
    acc.synchronize("cuda:0")
    assert names == ["torch.accelerator.synchronize"] * 2


def test_get_accelerator(machine: Machine) -> None:
    assert torch._C._get_accelerator() == torch.device("cuda")


@pytest.mark.skipif(TORCH < (2, 9), reason="memory functions came later")
def test_memory(machine: Machine) -> None:
    assert acc.memory_allocated() == 0 and not machine.initialized
    torch.cuda.init()
    machine.gpus[0].allocated = machine.gpus[0].peak = 1 << 20
    assert acc.memory_allocated() == acc.max_memory_allocated() == 1 << 20
    assert acc.memory_reserved(0) == acc.max_memory_reserved(0) == 2 << 20
    assert acc.memory_stats(1)["num_ooms"] == 0
    machine.gpus[0].allocated = 0
    acc.reset_peak_memory_stats()
    acc.reset_accumulated_memory_stats()
    acc.empty_cache()
    assert acc.memory_reserved() == acc.max_memory_allocated() == 0


@pytest.mark.skipif(TORCH < (2, 13), reason="came later")
def test_newer_functions(machine: Machine) -> None:
    assert acc.get_memory_info() == torch.cuda.mem_get_info()
    acc.empty_host_cache()
    assert torch.bfloat16 in acc.get_device_capability()["supported_dtypes"]


@pytest.mark.skipif(TORCH < (2, 14), reason="came with 2.14")
def test_random(machine: Machine) -> None:
    torch.manual_seed(3)
    assert acc.random.initial_seed() == 3
    assert torch.equal(acc.random.get_rng_state(), torch.get_rng_state())

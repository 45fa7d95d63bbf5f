"""Settings of the libraries, the profiler, NVTX, the CUDA runtime, graphs and kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.config  # the profiler imports it, and it changes torch for good
from torch.profiler import ProfilerActivity

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.cuda_errors import NotSimulated
from torchport.inside.vcuda.machine import Machine

cuda: Any = torch.cuda
backends: Any = torch.backends


def test_precision_settings_are_kept(machine: Machine) -> None:
    before = backends.cuda.matmul.allow_tf32
    for value in (True, False):
        backends.cuda.matmul.allow_tf32 = value
        assert backends.cuda.matmul.allow_tf32 is value
    backends.cuda.matmul.allow_tf32 = before
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        kept = getattr(backends.cuda.matmul, name)
        setattr(backends.cuda.matmul, name, False)
        assert getattr(backends.cuda.matmul, name) is False
        setattr(backends.cuda.matmul, name, kept)


def test_cudnn_settings(machine: Machine) -> None:
    with backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=False):
        assert backends.cudnn.benchmark and backends.cudnn.deterministic
    assert not backends.cudnn.benchmark
    assert backends.cudnn.benchmark_limit == 10
    backends.cudnn.benchmark_limit = 4
    assert backends.cudnn.benchmark_limit == 4
    assert not backends.cudnn.is_acceptable(torch.zeros(2))
    assert torch._use_cudnn_rnn_flatten_weight() is False  # type: ignore[attr-defined]


@pytest.mark.skipif(TORCH < (2, 11), reason="older cuDNN runs on every card")
def test_cudnn_refuses_old_cards(facade: Any) -> None:
    with facade(gpu="v100"), pytest.raises(RuntimeError, match=r"not compatible with devices with SM < 7\.5"):
        backends.cudnn.version()


def test_libraries(machine: Machine) -> None:
    assert backends.cuda.preferred_linalg_library() is not None
    assert backends.cuda.flash_sdp_enabled()
    if TORCH >= (2, 5):
        assert backends.cuda.is_flash_attention_available()
    cache = backends.cuda.cufft_plan_cache
    cache.max_size = 7
    assert (cache[0].max_size, cache[1].max_size, cache.size) == (7, 4096, 0)
    cache.clear()
    with pytest.raises(RuntimeError, match="expected 0 <= device index < 2"):
        cache[5]


@pytest.mark.parametrize(("gpu", "size"), [("a100", 8_519_680), ("h100", 33_554_432)])
@pytest.mark.skipif(not hasattr(backends.cuda, "cublas_workspace_size"), reason="came later")
def test_cublas_workspace(facade: Any, gpu: str, size: int) -> None:
    with facade(gpu=gpu):
        assert backends.cuda.cublas_workspace_size() == size
        assert backends.cuda.cublas_workspace_size(1024) == 1024


def test_tunable(machine: Machine) -> None:
    assert not cuda.tunable.is_enabled()
    cuda.tunable.enable(True)
    assert cuda.tunable.is_enabled()
    cuda.tunable.set_max_tuning_duration(5)
    assert cuda.tunable.get_max_tuning_duration() == 5


@pytest.mark.parametrize(
    "options",
    [
        {"activities": [ProfilerActivity.CPU, ProfilerActivity.CUDA], "record_shapes": True},
        {"activities": [ProfilerActivity.CUDA]},
        {},
    ],
)
@pytest.mark.filterwarnings("ignore:Profiler clears events at the end of each cycle")
def test_the_profiler_runs(machine: Machine, options: dict[str, Any]) -> None:
    with torch.profiler.profile(**options) as profile:
        torch.ones(3).add(1)
    table = profile.key_averages().table(sort_by="self_cuda_time_total", row_limit=5)
    assert "aten::add" in table
    faults: Any = machine.faults
    assert ("R505", "profiler") in faults.seen
    assert ProfilerActivity.CUDA in torch.profiler.supported_activities()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_older_ways_to_profile(machine: Machine) -> None:
    options = {"use_device": "cuda"} if TORCH >= (2, 14) else {"use_cuda": True}
    with torch.autograd.profiler.profile(**options) as profile:  # type: ignore[arg-type]
        torch.ones(3).add(1)
    assert any("add" in event.key for event in profile.key_averages())
    with torch.autograd.profiler.emit_nvtx(), cuda.profiler.profile():
        torch.ones(3)


def test_nvtx(machine: Machine) -> None:
    nvtx = cuda.nvtx
    assert [nvtx.range_push("a"), nvtx.range_push("b"), nvtx.range_pop(), nvtx.range_pop()] == [0, 1, 1, 0]
    nvtx.range_end(nvtx.range_start("c"))
    nvtx.mark("d")
    with nvtx.range("e{}", 1):
        pass


def test_the_runtime(machine: Machine) -> None:
    runtime = torch.cuda.cudart()
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info(0)
    assert runtime.cudaHostRegister(1, 2, 0) == runtime.cudaError.success == 0
    torch.cuda.check_error(0)
    with pytest.raises(cuda.CudaError, match=r"out of memory \(2\)"):
        torch.cuda.check_error(2)


def capture() -> None:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass


def compile_kernel() -> None:
    cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")(torch.ones(1))


def own_allocator() -> None:
    c: Any = torch._C
    c._cuda_customAllocator(1, 2)


REFUSED = [(capture, "R508"), (compile_kernel, "R502"), (own_allocator, "R502")]


@pytest.mark.parametrize(("call", "id"), REFUSED)
def test_what_cannot_run_says_so(machine: Machine, call: Any, id: str) -> None:
    torch.cuda.init()
    with pytest.raises(NotSimulated, match="cannot run on a virtual GPU: "):
        call()
    faults: Any = machine.faults
    assert [found for found, _ in faults.seen] == [id]


def test_graphed_callables_run_eagerly(machine: Machine) -> None:
    assert torch.cuda.make_graphed_callables(len, ()) is len
    assert not torch.cuda.is_current_stream_capturing()
    faults: Any = machine.faults
    assert faults.seen == [("R508", "torch.cuda.make_graphed_callables")]

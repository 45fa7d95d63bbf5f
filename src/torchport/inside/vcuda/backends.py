"""torch.backends.cuda, torch.backends.cudnn and torch.cuda.tunable: settings are kept, nothing reads them."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import builds
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_CUBLAS_WORKSPACE_BYTES = 8_519_680  # :4096:2:16:8, the default before Hopper
_CUBLAS_WORKSPACE_BYTES_HOPPER = 33_554_432
_NO_CUDNN_BELOW = (7, 5)  # from cuDNN 9.11 on


def install(patches: Patches, machine: Machine) -> None:
    """Answers of the libraries that a CUDA build brings along."""
    _cudnn(patches, machine)
    _blas(patches, machine)
    _attention(patches, machine)
    _fft_plans(patches)
    _tunable(patches)


def _setting(patches: Patches, getter: str, setter: str, value: Any) -> None:
    """A value behind two functions of torch._C."""
    kept = [value]
    patches.set(torch._C, getter, lambda *args: kept[0])
    patches.set(torch._C, setter, lambda value, *args: kept.__setitem__(0, value))


def _cudnn(patches: Patches, machine: Machine) -> None:
    facade: Any = torch.backends.cudnn  # a module whose attributes are properties; ``m`` is the module itself
    module = facade.m
    version = builds.build_of().cudnn
    if module._cudnn is not None:
        version = module._cudnn.getVersionInt()

    def init() -> bool:
        if version >= 91100 and machine.spec.capability < _NO_CUDNN_BELOW:
            raise RuntimeError(
                f"cuDNN version {version} is not compatible with devices with SM < 7.5. "
                "Please install a version of PyTorch with a compatible cuDNN version. "
                "https://github.com/pytorch/pytorch/blob/main/RELEASE.md#release-compatibility-matrix"
            )
        return True

    patches.set(torch._C, "_has_cudnn", True)
    patches.set(module, "_init", init)
    patches.set(module, "__cudnn_version", version)
    # Weights of recurrent layers stay apart: on the host nothing wants them in one piece.
    patches.set(torch, "_use_cudnn_rnn_flatten_weight", lambda: False)
    _setting(patches, "_cuda_get_cudnn_benchmark_limit", "_cuda_set_cudnn_benchmark_limit", 10)
    _setting(patches, "_cuda_get_conv_benchmark_empty_cache", "_cudnn_set_conv_benchmark_empty_cache", True)
    c: Any = torch._C
    limit = torch.backends.ContextProp(c._cuda_get_cudnn_benchmark_limit, c._cuda_set_cudnn_benchmark_limit)
    patches.set(type(facade), "benchmark_limit", limit)


def _blas(patches: Patches, machine: Machine) -> None:
    hopper = machine.spec.capability[0] in (9, 10, 12)
    workspace = _CUBLAS_WORKSPACE_BYTES_HOPPER if hopper else _CUBLAS_WORKSPACE_BYTES
    for library in ("Cublas", "CublasLt"):
        getter, setter = f"_cuda_get{library}WorkspaceSize", f"_cuda_set{library}WorkspaceSize"
        _setting(patches, getter, setter, workspace)
        reset = getattr(torch._C, setter)
        patches.set(torch._C, f"_cuda_reset{library}WorkspaceSize", lambda reset=reset: reset(workspace))
    patches.set(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)
    for name in ("_cuda_getCurrentBlasHandle", "_cuda_getCurrentSolverHandle"):
        patches.set(torch._C, name, lambda: 0x5600_0000_0000)


def _attention(patches: Patches, machine: Machine) -> None:
    """Which kernels scaled_dot_product_attention could use on the card."""
    capability = machine.spec.capability
    half = (torch.float16, torch.bfloat16)

    def flash(params: Any, debug: bool = False) -> bool:
        return capability >= (8, 0) and params.query.dtype in half and params.attn_mask is None

    def efficient(params: Any, debug: bool = False) -> bool:
        return capability >= (5, 0)

    def cudnn(params: Any, debug: bool = False) -> bool:
        return capability >= (8, 0) and params.query.dtype in half

    for name, answer in (
        ("_is_flash_attention_available", lambda: True),
        ("_can_use_flash_attention", flash),
        ("_can_use_mem_efficient_attention", efficient),
        ("_can_use_cudnn_attention", cudnn),
    ):
        if hasattr(torch._C, name):
            patches.set(torch._C, name, answer)


class _PlanCache:
    """Plans of one card: only the capacity is kept."""

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index
        self.max_size = 4096

    @property
    def size(self) -> int:
        return 0

    @size.setter
    def size(self, value: int) -> None:
        raise RuntimeError(
            ".size is a read-only property showing the number of plans currently in the cache. "
            "To change the cache capacity, set cufft_plan_cache.max_size."
        )

    def clear(self) -> None:
        pass


def _fft_plans(patches: Patches) -> None:
    module: Any = torch.backends.cuda
    patches.set(module, "cuFFTPlanCache", _PlanCache)
    patches.set(module, "cufft_plan_cache", module.cuFFTPlanCacheManager())


def _tunable(patches: Patches) -> None:
    for getter, setter, value in (
        ("is_enabled", "enable", False),
        ("tuning_is_enabled", "tuning_enable", True),
        ("get_max_tuning_duration", "set_max_tuning_duration", 30),
        ("get_max_tuning_iterations", "set_max_tuning_iterations", 100),
        ("get_rotating_buffer_size", "set_rotating_buffer_size", 0),
        ("get_filename", "set_filename", "tunableop_results.csv"),
        ("get_cublaslt_requested_algo_count", "set_cublaslt_requested_algo_count", 1),
    ):
        _setting(patches, f"_cuda_tunableop_{getter}", f"_cuda_tunableop_{setter}", value)
    _setting(patches, "_cuda_record_untuned_is_enabled", "_cuda_record_untuned_enable", False)
    for name, answer in (
        ("get_results", ()),
        ("get_validators", ()),
        ("read_file", True),
        ("write_file", True),
        ("write_file_on_exit", None),
        ("set_numerical_check_tolerances", None),
    ):
        patches.set(torch._C, f"_cuda_tunableop_{name}", lambda *args, answer=answer: answer)

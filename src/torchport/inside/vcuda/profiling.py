"""What watches a card: the CUDA runtime's functions, NVTX ranges, the profiler, NVML's readings."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch

from torchport.inside.vcuda.cuda import check_index
from torchport.inside.vcuda.cuda_errors import remark
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.memory import free_bytes, reserved_bytes
from torchport.inside.vcuda.patches import Patches


def install(patches: Patches, machine: Machine) -> None:
    """Tools that a script starts around its work: they run, and show the host."""
    patches.set(torch.cuda, "_cudart", Cudart(machine))
    patches.set(torch._C, "_cudart", torch.cuda._cudart)
    _nvtx(patches)
    _profiler(patches, machine)
    _readings(patches, machine)


class _Error(int):
    """A ``cudaError`` as the runtime's Python module shows it."""

    def __repr__(self) -> str:
        return f"<cudaError.{_ERRORS.get(int(self), ('unknown', ''))[0]}: {int(self)}>"

    @property
    def value(self) -> int:
        return int(self)


_ERRORS = {0: ("success", "no error"), 2: ("memoryAllocation", "out of memory"), 101: ("invalidDevice", "")}


class _ErrorType:
    success = _Error(0)

    def __call__(self, code: int) -> _Error:
        return _Error(code)


class Cudart:
    """The functions of the CUDA runtime that torch shows to Python (``torch.cuda.cudart()``)."""

    cudaError = _ErrorType()
    cudaOutputMode = None

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._handles = itertools.count(0x5700_0000_0000, 64)

    def cudaGetErrorString(self, error: int) -> str:
        return _ERRORS.get(int(error), ("", "unrecognized error code"))[1]

    def cudaMemGetInfo(self, index: int) -> tuple[int, int]:
        gpu = self._machine.gpus[check_index(self._machine, index)]
        return free_bytes(gpu), gpu.capacity_bytes

    def _succeed(self, *args: Any) -> _Error:
        return self.cudaError.success

    cudaProfilerStart = cudaProfilerStop = cudaProfilerInitialize = _succeed
    cudaHostRegister = cudaHostUnregister = cudaStreamCreate = cudaStreamDestroy = _succeed


def _nvtx(patches: Patches) -> None:
    depth = [0]

    class Nvtx:
        """Ranges go nowhere; their depth is right."""

        @staticmethod
        def rangePushA(message: str) -> int:
            depth[0] += 1
            return depth[0] - 1

        @staticmethod
        def rangePop() -> int:
            depth[0] -= 1
            return depth[0]

        @staticmethod
        def rangeStartA(message: str, identities: Any = itertools.count(1)) -> int:  # noqa: B008
            return next(identities)

        @staticmethod
        def _nothing(*args: Any) -> None:
            return None

        markA = rangeEnd = deviceRangeStart = deviceRangeEnd = _nothing

    patches.set(torch.cuda.nvtx, "_nvtx", Nvtx)
    patches.set(torch._C, "_nvtx", Nvtx)


def _profiler(patches: Patches, machine: Machine) -> None:
    """A profile of the card is one of the host."""
    cls = torch.autograd.profiler.profile
    original = cls.__init__

    @functools.wraps(original)
    def init(self: Any, enabled: bool = True, **options: Any) -> None:
        if options.get("use_device") == "cuda" or options.get("use_cuda"):
            remark(machine, "R505", "profiler", "the profiler shows the host's time, not a GPU's")
            options.update(use_device=None, use_cpu=True)
            for name in ("use_cuda", "activity_filters"):
                options.pop(name, None)
        original(self, enabled, **options)

    def activities() -> set[Any]:
        return set(torch._C._autograd._supported_activities()) | {torch.profiler.ProfilerActivity.CUDA}

    def enter(self: Any) -> Any:
        if self.enabled:
            torch.cuda.synchronize()
        return self

    def leave(self: Any, *error: Any) -> bool:
        if self.enabled:
            torch.cuda.synchronize()
        return False

    patches.set(cls, "__init__", init)
    for module in (torch.profiler, torch.profiler.profiler):
        patches.set(module, "supported_activities", activities)
    patches.set(torch.autograd.profiler.emit_nvtx, "__enter__", enter)
    patches.set(torch.autograd.profiler.emit_nvtx, "__exit__", leave)


def _readings(patches: Patches, machine: Machine) -> None:
    """NVML's values, where the project has the package that torch reads them with."""
    spec = machine.spec
    readings = {
        "utilization": lambda gpu: 0,
        "memory_usage": lambda gpu: 0,
        "temperature": lambda gpu: 40,
        "power_draw": lambda gpu: (spec.tdp_w or 0) * 1000,
        "clock_rate": lambda gpu: int((spec.boost_clock_hz or 0) / 1e6),
        "device_memory_used": lambda gpu: reserved_bytes(gpu) + gpu.context_bytes,
    }
    for name, value in readings.items():
        original = getattr(torch.cuda, name, None)
        if original is not None:
            patches.set(torch.cuda, name, _reading(machine, original, value))


def _reading(machine: Machine, original: Any, value: Any) -> Any:
    @functools.wraps(original)
    def read(device: Any = None) -> Any:
        cuda: Any = torch.cuda
        if not cuda._HAS_PYNVML:
            return original(device)
        index = cuda._utils._get_device_index(device, optional=True)
        remark(machine, "R505", original.__name__, f"torch.cuda.{original.__name__}() is a stand-in value")
        return value(machine.gpus[check_index(machine, index)])

    return read

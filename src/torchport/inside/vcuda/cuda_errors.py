"""Errors as the CUDA build of the installed torch words them."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Machine

_ASYNCHRONOUS = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
_DEVICE_ASSERTIONS = "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
_SEARCH = (
    "\nSearch for `{}' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information."
)
_RAISED_LATE = ("cudaErrorAssert", "cudaErrorIllegalAddress", "cudaErrorLaunchFailure")


def cuda_error_text(message: str, name: str, version: tuple[int, ...] = TORCH) -> str:
    """What ``C10_CUDA_CHECK`` prints for the error ``name`` (``cudaErrorInvalidDevice``) in a torch version.

    Read off the binaries of 2.4 to 2.14: the help line came with 2.9; since 2.13 only errors that can come
    late carry the warning about that; 2.13 alone names CUDA_LOG_FILE.
    """
    text = f"CUDA error: {message}"
    if version >= (2, 9):
        out_of_range = "\nGPU device may be out of range, do you have enough GPUs?"
        text += out_of_range if name == "cudaErrorInvalidDevice" else _SEARCH.format(name)
    if version < (2, 13) or name in _RAISED_LATE:
        text += _ASYNCHRONOUS
    elif version == (2, 13):
        text += "\nFor more detailed error information, run with CUDA_LOG_FILE=stderr"
    return text + _DEVICE_ASSERTIONS


def cuda_error(message: str, name: str) -> RuntimeError:
    """That error, of the class the installed torch raises (torch.AcceleratorError since 2.8)."""
    kind: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)
    return kind(cuda_error_text(message, name))


def invalid_device() -> RuntimeError:
    """A device index that is out of range."""
    return cuda_error("invalid device ordinal", "cudaErrorInvalidDevice")


class NotSimulated(RuntimeError):
    """Something that exists on a card and that a rehearsal does not have."""


def remark(machine: Machine, id: str, what: str, text: str) -> None:
    """Notes something for the report, once a place; silent where nobody listens."""
    faults: Any = getattr(machine, "faults", None)
    if faults is not None:
        faults.remark(id, what, text)


def not_simulated(machine: Machine, id: str, what: str, instead: str) -> NoReturn:
    """Ends a call that cannot be rehearsed with one error that says what to do."""
    text = f"{what} cannot run on a virtual GPU: {instead}"
    remark(machine, id, what, text)
    raise NotSimulated(text)

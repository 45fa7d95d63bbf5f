"""Which CUDA build of torch the virtual device pretends to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())


@dataclass(frozen=True, slots=True)
class Build:
    """CUDA version, cuDNN as ``cudnn.version()`` prints it, NCCL, and the architectures with kernels."""

    cuda: str
    cudnn: int
    nccl: tuple[int, int, int]
    archs: str


_OLD = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
_MIDDLE = "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
_NEW = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"

# What `pip install torch` gives on 64-bit Intel Linux; read off the wheels' own metadata and binaries.
_DEFAULT_WHEELS = {
    (2, 4): Build("12.1", 90100, (2, 20, 5), _OLD),
    (2, 5): Build("12.4", 90100, (2, 21, 5), _OLD),
    (2, 6): Build("12.4", 90100, (2, 21, 5), _OLD),
    (2, 7): Build("12.6", 90501, (2, 26, 2), _OLD),
    (2, 8): Build("12.8", 91002, (2, 27, 3), _MIDDLE),
    (2, 9): Build("12.8", 91002, (2, 27, 5), _MIDDLE),
    (2, 10): Build("12.8", 91002, (2, 27, 5), _MIDDLE),
    (2, 11): Build("13.0", 91900, (2, 28, 9), _NEW),
    (2, 12): Build("13.0", 92000, (2, 29, 7), _NEW),
    (2, 13): Build("13.0", 92000, (2, 29, 7), _NEW),
    (2, 14): Build("13.0", 92400, (2, 30, 7), _NEW),
    (2, 15): Build("13.2", 92600, (2, 30, 7), _NEW),
}


def compiled_with_cuda() -> bool:
    """Whether the installed wheel is a CUDA build (asked before anything is patched)."""
    return hasattr(torch._C, "_cuda_getDeviceCount")


def build_of(version: tuple[int, ...] = TORCH) -> Build:
    """The default CUDA build of a torch version; for one newer than the table, the table's newest."""
    known = [release for release in _DEFAULT_WHEELS if release <= version]
    return _DEFAULT_WHEELS[max(known, default=min(_DEFAULT_WHEELS))]


def installed_build() -> Build:
    """The wheel's own facts if it is a CUDA build, else the CUDA build of the same version."""
    default = build_of()
    if not compiled_with_cuda():
        return default
    c: Any = torch._C
    packed = c._nccl_version() if hasattr(c, "_nccl_version") else 0
    nccl = (packed >> 32, packed >> 16 & 0xFFFF, packed & 0xFFFF) if packed else default.nccl
    cuda = torch.version.cuda or default.cuda
    return Build(cuda, default.cudnn, nccl, c._cuda_getArchFlags() or default.archs)

"""torch.cuda: which devices there are and which is current.

torch's own Python in ``torch/cuda`` stays. What a CUDA build has below it in ``torch._C`` is replaced here:
arguments are read and errors worded as the installed version does it.
"""

from __future__ import annotations

import uuid
from typing import Any

import torch

from torchport.inside.vcuda import builds
from torchport.inside.vcuda.cuda_errors import invalid_device
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.properties import DeviceProperties
from torchport.inside.vcuda.rng import DefaultGenerator

CUDA_TYPE = 1  # c10::DeviceType::CUDA


def ensure_initialized(machine: Machine) -> None:
    """Makes the CUDA context, as every first use of the device does.

    Raises RuntimeError in a child forked after that, and where CUDA_VISIBLE_DEVICES leaves no device.
    """
    if machine.forked or not machine.initialized:
        torch.cuda._lazy_init()


def device_count(machine: Machine) -> int:
    """Number of cards this process sees, fixed by the first call: CUDA_VISIBLE_DEVICES is read once."""
    return len(visible(machine))


def visible(machine: Machine) -> tuple[int, ...]:
    """The physical indices behind cuda:0, cuda:1 …"""
    if machine.visible is None:
        cuda: Any = torch.cuda
        wanted = cuda._parse_visible_devices()
        if wanted and isinstance(wanted[0], str):
            wanted = cuda._transform_uuid_to_ordinals(wanted, _uuids(machine))
        count = max(0, cuda._device_count_nvml())
        machine.visible = tuple(wanted[:count])
    return machine.visible


def check_index(machine: Machine, index: int) -> int:
    """The index of a device that exists. Raises CUDA's "invalid device ordinal"."""
    ensure_initialized(machine)
    if not 0 <= index < device_count(machine):
        error = invalid_device()
        faults: Any = getattr(machine, "faults", None)
        if faults is None or device_count(machine) == 0:
            raise error
        # Healed, the card is the current one: the run goes on to its next fault.
        faults.refuse("R106", str(error), type(error), remedy="device-index", op=f"cuda:{index}")
        return machine.current
    return index


def device_uuid(index: int) -> uuid.UUID:
    """A stable identity of a virtual card."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, f"virtual-gpu-{index}")


def _uuids(machine: Machine) -> list[str]:
    return [f"GPU-{device_uuid(gpu.index)}" for gpu in machine.gpus]


def install(patches: Patches, machine: Machine) -> None:
    """Device management."""
    build = builds.installed_build()
    _state(patches, machine)
    _devices(patches, machine)
    _versions(patches, machine, build)


def _state(patches: Patches, machine: Machine) -> None:
    """A torch.cuda that was never initialised, whatever happened before."""
    cuda: Any = torch.cuda

    def cuda_init() -> None:
        if device_count(machine) == 0:
            raise RuntimeError("No CUDA GPUs are available")
        machine.initialized = True
        cuda.default_generators = tuple(DefaultGenerator(machine, i) for i in range(device_count(machine)))

    # Kernels in Triton cannot run here, and what registers them could not be taken back.
    queued = [call for call in cuda._queued_calls if call[0].__name__ != "_register_triton_kernels"]
    patches.set(cuda, "_initialized", False)
    patches.set(cuda, "_cached_device_count", None)
    patches.set(cuda, "_queued_calls", queued)
    patches.set(cuda, "_lazy_seed_tracker", type(cuda._lazy_seed_tracker)())
    patches.set(cuda, "default_generators", ())
    patches.set(cuda, "_is_in_bad_fork", lambda: machine.forked)
    patches.set(torch._C, "_cuda_isInBadFork", lambda: machine.forked)
    patches.set(torch._C, "_cuda_init", cuda_init)
    patches.set(torch._C, "_cuda_hasPrimaryContext", lambda index: machine.initialized)


def _devices(patches: Patches, machine: Machine) -> None:
    cuda: Any = torch.cuda

    def exchange_device(index: int) -> int:
        if index < 0:
            return -1
        before, machine.current = machine.current, check_index(machine, index)
        return before

    def set_device(index: int) -> None:
        machine.current = check_index(machine, index)

    def get_device() -> int:
        ensure_initialized(machine)
        return machine.current

    def can_access_peer(index: int, peer: int) -> bool:
        # The driver of GeForce cards does not allow it.
        return index != peer and "GeForce" not in machine.spec.name

    def get_properties(index: int) -> DeviceProperties:
        return DeviceProperties(machine.spec, index, device_uuid(visible(machine)[index]))

    for name in ("_cuda_exchangeDevice", "_cuda_maybeExchangeDevice"):
        patches.set(torch._C, name, exchange_device)
    for name in ("_exchange_device", "_maybe_exchange_device"):
        patches.set(cuda, name, exchange_device)
    patches.set(torch._C, "_cuda_setDevice", set_device)
    patches.set(torch._C, "_cuda_getDevice", get_device)
    patches.set(torch._C, "_cuda_getDeviceCount", lambda: device_count(machine))
    patches.set(torch._C, "_cuda_canDeviceAccessPeer", can_access_peer)
    patches.set(torch._C, "_CudaDeviceProperties", DeviceProperties)
    patches.set(cuda, "_CudaDeviceProperties", DeviceProperties)
    patches.set(cuda, "_get_device_properties", get_properties)
    patches.set(cuda, "_raw_device_count_nvml", lambda: len(machine.gpus))
    patches.set(cuda, "_raw_device_uuid_nvml", lambda: _uuids(machine))
    if hasattr(cuda, "_check_bf16_tensor_supported"):
        # Remembers its answer for the whole process; every card since Kepler at least emulates bfloat16.
        patches.set(cuda, "_check_bf16_tensor_supported", lambda device: True)


def _versions(patches: Patches, machine: Machine, build: builds.Build) -> None:
    major, minor = build.cuda.split(".")[:2]
    nccl = build.nccl
    patches.set(torch.version, "cuda", build.cuda)
    patches.set(torch._C, "_has_cuda", True)
    patches.set(torch.cuda, "has_magma", True)
    patches.set(torch._C, "_cuda_getArchFlags", lambda: build.archs)
    patches.set(torch._C, "_cuda_getCompiledVersion", lambda: int(major) * 1000 + int(minor) * 10)
    patches.set(torch._C, "_nccl_version", lambda: nccl[0] << 32 | nccl[1] << 16 | nccl[2])
    patches.set(torch._C, "_nccl_version_suffix", lambda: b"")

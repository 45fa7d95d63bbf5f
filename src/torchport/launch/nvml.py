"""Asks NVIDIA's driver for its cards, by its library NVML, and prints the answer as JSON.

It is run as a program of its own, by path and with the standard library alone: a driver that is in trouble may never
return from a call, and takes only this process with it. Names and structures are those of NVIDIA's ``nvml.h``.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
_MOST_PROCESSES = 256
_UNKNOWN = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
_PROHIBITED = 2  # NVML_COMPUTEMODE_PROHIBITED


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Memory2(ctypes.Structure):
    """nvmlMemory_v2_t, whose ``used`` is without what the driver keeps for itself."""

    _fields_ = [
        ("version", ctypes.c_uint),
        *[(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")],
    ]


class Process(ctypes.Structure):
    """nvmlProcessInfo_t since its second version."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Process1(ctypes.Structure):
    """nvmlProcessInfo_v1_t."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]


class Nvml:
    """The library. A function that this driver does not have, or does not answer, gives None."""

    def __init__(self, name: str = LIBRARY) -> None:
        """Raises OSError where there is no such library, RuntimeError where it cannot reach the driver."""
        self.library = ctypes.CDLL(name)
        code = self.library.nvmlInit_v2()
        if code:
            self.library.nvmlErrorString.restype = ctypes.c_char_p
            words = self.library.nvmlErrorString(code)
            raise RuntimeError(words.decode("utf-8", "replace") if words else f"nvmlInit: {code}")

    def works(self, name: str, *arguments: Any) -> bool:
        """Calls a function; whether it is there and did what it was asked."""
        try:
            return int(getattr(self.library, name)(*arguments)) == 0
        except AttributeError:
            return False

    def text(self, name: str, *before: Any) -> str | None:
        buffer = ctypes.create_string_buffer(_TEXT)
        return buffer.value.decode("utf-8", "replace") if self.works(name, *before, buffer, _TEXT) else None

    def number(self, name: str, *before: Any) -> int | None:
        value = ctypes.c_uint()
        return value.value if self.works(name, *before, ctypes.byref(value)) else None


def cards(nvml: Nvml) -> list[dict[str, Any]]:
    """All cards; one that does not answer at all is left out, as it is by CUDA."""
    found = []
    for index in range(nvml.number("nvmlDeviceGetCount_v2") or 0):
        device = ctypes.c_void_p()
        if not nvml.works("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device)):
            continue
        total, used = _memory(nvml, device)
        found.append(
            {
                "index": index,
                "uuid": nvml.text("nvmlDeviceGetUUID", device) or f"card-{index}",
                "name": nvml.text("nvmlDeviceGetName", device) or "NVIDIA",
                "memory_bytes": total,
                "used_bytes": used,
                "capability": _capability(nvml, device),
                "mig": _mig(nvml, device),
                "prohibited": nvml.number("nvmlDeviceGetComputeMode", device) == _PROHIBITED,
                "holders": _processes(nvml, device, "Compute"),
                "shown": _processes(nvml, device, "Graphics"),
            }
        )
    return found


def _memory(nvml: Nvml, device: ctypes.c_void_p) -> tuple[int | None, int | None]:
    second = Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
    if nvml.works("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(second)):
        return second.total, second.used
    first = Memory()
    if nvml.works("nvmlDeviceGetMemoryInfo", device, ctypes.byref(first)):
        return first.total, first.used
    return None, None  # such as where the card's memory is the host's


def _capability(nvml: Nvml, device: ctypes.c_void_p) -> list[int] | None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    answered = nvml.works("nvmlDeviceGetCudaComputeCapability", device, ctypes.byref(major), ctypes.byref(minor))
    return [major.value, minor.value] if answered else None


def _mig(nvml: Nvml, device: ctypes.c_void_p) -> bool:
    now, later = ctypes.c_uint(), ctypes.c_uint()
    return nvml.works("nvmlDeviceGetMigMode", device, ctypes.byref(now), ctypes.byref(later)) and now.value == 1


def _processes(nvml: Nvml, device: ctypes.c_void_p, kind: str) -> list[list[int | None]] | None:
    """[pid, bytes or None] of each process that computes on the card, or draws; None where nothing is known."""
    for ending, structure in (("_v3", Process), ("_v2", Process), ("", Process1)):
        count = ctypes.c_uint(_MOST_PROCESSES)
        rows = (structure * _MOST_PROCESSES)()
        if nvml.works(f"nvmlDeviceGet{kind}RunningProcesses{ending}", device, ctypes.byref(count), rows):
            return [[row.pid, None if row.used == _UNKNOWN else row.used] for row in rows[: count.value]]
    return None


def answer() -> dict[str, Any]:
    """What is printed: ``cards``, the driver's ``version`` and newest ``cuda``, or ``error``; no library: no cards."""
    try:
        nvml = Nvml()
    except OSError:
        return {"cards": [], "version": None, "cuda": None, "error": None}
    except RuntimeError as error:
        return {"cards": [], "version": None, "cuda": None, "error": str(error)}
    version = nvml.text("nvmlSystemGetDriverVersion")
    cuda = nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    return {"cards": cards(nvml), "version": version, "cuda": cuda, "error": None}


if __name__ == "__main__":
    print(json.dumps(answer()))

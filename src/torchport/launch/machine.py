"""This machine, looked up without torch or a driver library."""

from __future__ import annotations

import os
import platform
import re
import socket
from pathlib import Path

from torchport.facts import DriverFacts, HostFacts
from torchport.process import ProgramMissing, ProgramTimeout, run


def host() -> HostFacts:
    """System, processor and memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        memory = None
    return HostFacts(platform.system(), platform.machine(), os.cpu_count(), memory)


def free_port() -> int:
    """A port on the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def driver(root: Path = Path("/"), program: str = "nvidia-smi") -> DriverFacts | None:
    """NVIDIA's driver, None where there is none: the kernel module says its version; where that is hidden, its tool."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        try:
            text = run([program, "--query-gpu=driver_version", "--format=csv,noheader"], timeout_s=20).stdout
        except (ProgramMissing, ProgramTimeout):
            return None
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return DriverFacts(match[1]) if match else None


def capability(program: str = "nvidia-smi") -> str | None:
    """The compute capability of the first card, as NVIDIA's tool tells it, None where it does not: "8.9"."""
    try:
        text = run([program, "--query-gpu=compute_cap", "--format=csv,noheader"], timeout_s=20).stdout
    except (ProgramMissing, ProgramTimeout):
        return None
    match = re.match(r"\s*(\d+\.\d)\s*$", text.splitlines()[0]) if text.strip() else None
    return match[1] if match else None


def real_gpus(root: Path = Path("/")) -> tuple[str, ...]:
    """Names of the cards that this machine has, empty for none.

    NVIDIA's driver lists its cards under /proc; where that is hidden, as in many containers, the device files
    tell how many there are. AMD's compute driver shows as /dev/kfd; under WSL /dev/dxg is a GPU of any make,
    and the library beside it NVIDIA's.
    """
    named = [
        match.group(1)
        for card in sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
        if (match := re.search(r"^Model:\s*(.+?)\s*$", card.read_text(errors="replace"), re.MULTILINE))
    ]
    if named:
        return tuple(named)
    devices = [path for path in sorted((root / "dev").glob("nvidia[0-9]*")) if path.name[6:].isdigit()]
    wsl = [root / "dev/dxg"] if (root / "usr/lib/wsl/lib/libcuda.so.1").exists() else []
    others = [path for path in (root / "dev/kfd", *wsl) if path.exists()]
    return tuple("/" + str(path.relative_to(root)) for path in (*devices, *others))

"""The processes of this machine: whose they are, what they run, and which belong to a run."""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from torchport.launch.activity import lives

# In the environment of every process of a run: the path of its run folder. What a program starts has it too, and
# keeps it when it leaves its process group, its session or its parent.
MARK = "TORCHPORT_RUN"

PROC = Path("/proc")


def user_name(uid: int) -> str:
    """The user's name, the number where there is none, as in many containers."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def owner(pid: int, proc: Path = PROC) -> str | None:
    """The user that runs a process, None where the system does not tell."""
    try:
        return user_name((proc / str(pid)).stat().st_uid)
    except OSError:
        return None


def command(pid: int, proc: Path = PROC) -> tuple[str, ...] | None:
    """The command line of a process, None where the system does not tell."""
    try:
        data = (proc / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    words = data.decode("utf-8", "replace").rstrip("\0").split("\0")
    return tuple(words) if words != [""] else None


def variable(pid: int, name: str, proc: Path = PROC) -> str | None:
    """What a process found in its environment, None where there is nothing or the system does not tell."""
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    start = f"{name}=".encode()
    found = (entry for entry in data.split(b"\0") if entry.startswith(start))
    entry = next(found, None)
    return None if entry is None else os.fsdecode(entry[len(start) :])


def processes(proc: Path = PROC) -> list[int]:
    """All processes that can be seen."""
    try:
        return sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except OSError:
        return []


def marked(folder: Path) -> list[int]:
    """The living processes of a run, without the one that asks."""
    run = str(folder)
    return [pid for pid in processes() if pid != os.getpid() and variable(pid, MARK) == run and lives(pid)]


def children(parent: int) -> Iterator[int]:
    for pid in processes():
        try:
            fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            yield pid


def ranks(launcher: int) -> list[int]:
    """The workers that a torchrun has started."""
    return [pid for pid in children(launcher) if variable(pid, "RANK") is not None]


def send_all(pids: Iterable[int], number: signal.Signals, kill: Callable[[int, int], None] = os.kill) -> None:
    """Sends a signal to each process; one that is no more, or another user's, is left out."""
    for pid in pids:
        try:
            kill(pid, number)
        except OSError:
            continue

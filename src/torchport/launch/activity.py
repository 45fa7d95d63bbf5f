"""Whether a process computes or only waits, as the system tells it."""

from __future__ import annotations

import os

# A thread that computes is on a processor, or waits for one, nearly all of the time; gloo's looks around every ten
# milliseconds, which a busy machine may stretch.
_BUSY_SHARE = 0.5
_WINDOW_S = 0.25
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Activity:
    """The threads of one process from look to look. Where the system does not tell, none is ever busy.

    A rank that waits for another sleeps; one that moves data, or that a busy machine keeps from it, does not.
    """

    def __init__(self) -> None:
        self._since = float("-inf")
        self._times: dict[str, int] = {}
        self._busy = False

    def busy(self, pid: int, now: float) -> bool:
        """Whether a thread of the process ran, waited for a processor or stood at the disk since the last look.

        ``now`` is in seconds of a monotonic clock; looks less than a quarter of a second apart get the same answer.
        """
        elapsed = now - self._since
        if elapsed >= _WINDOW_S:
            before, self._times, self._since = self._times, _times(pid), now
            spent = [time - before[thread] for thread, time in self._times.items() if thread in before]
            self._busy = max(spent, default=0) > _BUSY_SHARE * elapsed * 1e9 or _at_disk(pid)
        return self._busy


def lives(pid: int) -> bool:
    """Whether a process is there and not a zombie, which waits only for its parent to ask how it ended."""
    try:
        os.kill(pid, 0)
        return not os.path.isdir("/proc/self") or _fields(f"/proc/{pid}/stat")[0] != b"Z"
    except (OSError, IndexError):
        return False


def born(pid: int) -> int | None:
    """When a process was started, in ticks since the system was; None where the system does not tell."""
    try:
        return int(_fields(f"/proc/{pid}/stat")[19])
    except (OSError, IndexError, ValueError):
        return None


def _threads(pid: int) -> list[str]:
    try:
        return [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _times(pid: int) -> dict[str, int]:
    """For how long each thread has run or waited to run, in nanoseconds."""
    times = {}
    for thread in _threads(pid):
        try:
            with open(f"{thread}/schedstat", "rb") as file:
                ran, waited, _ = file.read().split()
            times[thread] = int(ran) + int(waited)
        except (OSError, ValueError):  # this kernel does not count the waits
            try:
                times[thread] = sum(map(int, _fields(f"{thread}/stat")[11:13])) * _TICK_NS
            except (OSError, ValueError):
                continue
    return times


def _at_disk(pid: int) -> bool:
    for thread in _threads(pid):
        try:
            if _fields(f"{thread}/stat")[0] == b"D":
                return True
        except (OSError, IndexError):
            continue
    return False


def _fields(path: str) -> list[bytes]:
    """The fields of a stat file after the name: state first."""
    with open(path, "rb") as file:
        return file.read().rpartition(b")")[2].split()

"""What the commands that show the output of a run share: lines with their rank, and the words at the end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from torchport.text import _

if TYPE_CHECKING:
    from torchport.launch.standing import Standing

_LOOK_EVERY_S = 0.1


def show(lines: Iterable[tuple[int, str]], world: int) -> None:
    """Prints lines as they come, with their rank where there are several."""
    from torchport.launch.logs import prefix

    for rank, line in lines:
        print(prefix(rank, world) + line, flush=True)


class Shown:
    """Prints what the ranks of a run write while we supervise it."""

    def __init__(self, folder: str, world: int) -> None:
        from torchport.launch.logs import Growing

        self._growing = Growing(Path(folder))
        self._world = world
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        from torchport.launch.logs import settled

        while True:
            last = self._ended.wait(_LOOK_EVERY_S)
            try:
                show(((rank, settled(line)) for rank, line in self._growing.look(last=last)), self._world)
            except BrokenPipeError:
                # Whoever read the output has left: the run ends as any program does then.
                os.kill(os.getpid(), signal.SIGTERM)
                return
            if last:
                return

    def end(self) -> None:
        """Prints what is left."""
        self._ended.set()
        self._thread.join()


def show_failure(folder: str) -> None:
    """The last words of the rank that failed first, where they stand: at the end."""
    from torchport.api.runs import failure

    told = failure(folder)
    if told is None:
        return
    rank, words = told
    sys.stdout.flush()
    heading = _("torchrun itself failed:") if rank is None else _("rank {rank} failed first:").format(rank=rank)
    print(f"\ntorchport: {heading}", file=sys.stderr)
    for line in words:
        print(f"    {line}", file=sys.stderr)


def how_it_ended(run: Standing) -> str:
    """One line on a run, as it stands now."""
    by_signal = (
        _(" (signal {number})").format(number=run.code - 128) if run.code is not None and 128 < run.code < 160 else ""
    )
    words = {
        "finished": _("ended with exit code {code}"),
        "hung": _("hung, exit code {code}"),
        "timeout": _("ran out of time, exit code {code}"),
        "error": _("failed with exit code {code}{signal}"),
        "stopped": _("was stopped, exit code {code}{signal}"),
        "terminated": _("was asked to end by SIGTERM, exit code {code}{signal}"),
        "hangup": _("ended with its terminal, exit code {code}{signal}"),
        "interrupted": _("was interrupted, exit code {code}{signal}"),
        "not started": _("could not be started"),
    }
    if run.phase == "ended":
        ending = words.get(run.reason or "", _("ended with exit code {code}{signal}"))
        return f"{run.name} " + ending.format(code=run.code, signal=by_signal)
    if run.phase == "lost":
        return f"{run.name} " + _("is lost: the process that watched it was killed, nobody knows how it ended")
    if run.phase == "elsewhere":
        return f"{run.name} " + _("was started on {host}").format(host=run.host)
    return f"{run.name} " + {"waiting": _("waits for free cards"), "running": _("runs")}.get(run.phase, run.phase)

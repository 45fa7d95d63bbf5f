"""Stopping a run: its supervisor is asked; where there is none any more, what is left of the run is ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from torchport.launch import tree
from torchport.launch.job import STOP, finish, sweep
from torchport.launch.run_folder import read_json, write_json
from torchport.launch.standing import Standing, standing

# What a supervisor may need beyond the grace of its run: to end what is left and to write down how it ended.
BEYOND_GRACE_S = 15.0


class NotStopped(Exception):
    """A run of another user or another machine."""


def stop(run: Standing, *, at_once: bool = False) -> Standing:
    """Stops a run that lives and returns how it then stands. Raises NotStopped where that is not ours to do."""
    folder = Path(run.folder)
    write_json(folder / STOP, {"by": tree.user_name(os.getuid()), "at_once": at_once, "asked": time.time()})
    if run.phase in ("running", "waiting") and run.supervisor is not None:
        try:
            os.kill(run.supervisor, signal.SIGTERM)
            if at_once and run.phase == "running":
                _twice(run.supervisor)
        except PermissionError as error:
            raise NotStopped(run.user or "") from error
        except ProcessLookupError:
            pass
        if _ends(folder, (0.0 if at_once else run.plan.grace_s) + BEYOND_GRACE_S):
            return standing(folder, time.time())
    _end_orphans(folder, run, 0.0 if at_once else run.plan.grace_s)
    return standing(folder, time.time())


def _twice(supervisor: int) -> None:
    """A second signal ends the grace; it must not fall together with the first."""
    time.sleep(0.3)
    tree.send_all([supervisor], signal.SIGTERM)


def _ends(folder: Path, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if (folder / "exit.json").exists():
            return True
        time.sleep(0.1)
    return False


def _end_orphans(folder: Path, run: Standing, grace_s: float) -> None:
    """Does what the supervisor cannot do any more, or does not."""
    noted = read_json(folder / "state.json") or {}
    if run.supervisor is not None and run.phase != "lost":
        tree.send_all([run.supervisor], signal.SIGKILL)
    left = sweep(folder, grace_s)
    if run.phase == "lost" and not left and run.pid in run.living:
        tree.send_all([run.pid], signal.SIGKILL)  # it has cleared its environment
    by = tree.user_name(os.getuid())
    started = noted.get("started")
    seconds = round(time.time() - started, 3) if started else None
    # Its own exit code nobody has seen.
    finish(folder, {"code": 137, "reason": "stopped", "rank": None, "by": by, "seconds": seconds, "ended": time.time()})

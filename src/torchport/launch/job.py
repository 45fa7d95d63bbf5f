"""A job from its first process to ``exit.json``: what a run in the foreground and a detached one have in common."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from torchport import __version__
from torchport.launch import postscript, tree
from torchport.launch.engines import ENGINES
from torchport.launch.processes import Process
from torchport.launch.run_folder import read_json, state, write_json
from torchport.launch.supervise import END_WITHIN_S, Ending, Manner, supervise
from torchport.launch.terminal import copied
from torchport.plan import Plan
from torchport.process import ProgramMissing, send

# Who asked a run to stop, and how much time it is given; written before the signal is sent.
STOP = "stop.json"
ROOT_CAUSE = re.compile(r"Root Cause.*?^ *rank +: (\d+).*?^ *exitcode +: (-?\d+)", re.DOTALL | re.MULTILINE)


def carry_out(
    place: Path,
    plan: Plan,
    environ: Mapping[str, str],
    *,
    attached: bool,
    options: Sequence[str] = (),
    keep: Sequence[int] = (),
) -> int:
    """Runs the job in its run folder and returns the script's exit code (128 + the signal that ended it).

    ``attached``: the program has our terminal and ends with it; else it is in a session of its own and no closed
    terminal ends it. ``options`` are those of the project's torchrun, ``keep`` open locks that the job holds too.
    Raises ProgramMissing, once exit.json says so.
    """
    engine = ENGINES[plan.engine](attached, tuple(options))
    processes = engine.processes(plan, place, environ)
    started = time.time()
    alone = attached and not plan.launcher
    manner = Manner(
        own_group=not alone,
        keep=tuple(keep),
        stop_on=(signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if attached else ())),
        relay=(signal.SIGUSR1, signal.SIGUSR2),
        ask=partial(_ask, plan),
        grace_s=plan.grace_s,
        sweep=partial(sweep, place),
    )
    run = partial(
        supervise,
        processes,
        folder=plan.folder,
        environ=environ,
        started=lambda pid: write_json(place / "state.json", state(pid, started)),
    )
    try:
        if alone:
            with copied(place / "logs" / "rank0.log") as (output, errors):
                ending = run(manner=replace(manner, output=output, errors=errors))
        else:
            ending = run(manner=manner)
    except ProgramMissing as error:
        finish(place, {"code": 127, "reason": "not started", "error": str(error), "seconds": 0.0})
        raise
    return _conclude(place, plan, processes, ending)


def _ask(plan: Plan, child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to where the script hears it.

    A script gets it alone: its loader's workers would die of it while the script saves what it has. A command may
    be a shell whose children matter, so all of its group are asked to end. torchrun dies of SIGUSR1, and after
    SIGTERM it ends with 1 even where all ranks saved and ended well: so the ranks get the signal, and torchrun ends
    when they have. Only where it would start them again it is asked itself.
    """
    to_end = number in (signal.SIGTERM, signal.SIGINT)
    workers = tree.ranks(child.pid) if plan.launcher and not (plan.max_restarts and to_end) else []
    if workers:
        tree.send_all(workers, number)
    elif to_end and plan.kind == "command":
        send(child, number)
    elif to_end or not plan.launcher:
        tree.send_all([child.pid], number)


def sweep(place: Path, within_s: float = END_WITHIN_S) -> list[int]:
    """Ends what a run has left behind, wherever it went: politely, then for good. Returns what was there."""
    left = tree.marked(place)
    tree.send_all(left, signal.SIGTERM)
    end = time.monotonic() + within_s
    while (rest := tree.marked(place)) and time.monotonic() < end:
        time.sleep(0.05)
    tree.send_all(rest, signal.SIGKILL)
    return left


def finish(place: Path, ended: Mapping[str, Any]) -> None:
    """Writes exit.json: the run has ended."""
    write_json(place / "exit.json", dict(ended))


def first_failure(place: Path) -> tuple[int, int] | None:
    """(rank, exit code) of the rank that failed first, as torchrun tells it; None where it tells nothing."""
    with suppress(OSError):
        log = (place / "logs" / "launcher.log").read_text(encoding="utf-8", errors="replace")
        if found := ROOT_CAUSE.findall(log):
            return int(found[-1][0]), int(found[-1][1])
    return None


def shell_code(code: int) -> int:
    """An exit code as the shell tells it."""
    return code if code >= 0 else 128 - code


def _conclude(place: Path, plan: Plan, processes: Sequence[Process], ending: Ending) -> int:
    """Writes what is known at the end: the record's last lines and exit.json."""
    (code,) = ending.codes
    failed = first_failure(place) if plan.launcher and code else None
    code = shell_code(failed[1] if failed else code)
    reason = {"ended": "finished", "failed": "error"}.get(ending.reason, ending.reason)
    if ending.signal == signal.SIGTERM:
        # Preempted, say: by whom and why the signal came, only who sent it knows.
        reason = "stopped" if (place / STOP).exists() else "terminated"
    elif ending.signal == signal.SIGHUP:
        reason = "hangup"
    by = (read_json(place / STOP) or {}).get("by") if reason == "stopped" else None
    seconds = round(ending.seconds, 3)
    header = {"version": __version__, "rank": 0, "world": plan.processes, "plan": asdict(plan)}
    header["facts"] = read_json(place / "facts.json")
    with suppress(OSError):
        last = {"code": code, "reason": reason, "error": None, "seconds": seconds}
        postscript.add(Path(processes[0].record_path), header, (), last)
    ended = {"code": code, "reason": reason, "rank": failed[0] if failed else None, "by": by, "seconds": seconds}
    finish(place, {**ended, "ended": time.time()})
    return code

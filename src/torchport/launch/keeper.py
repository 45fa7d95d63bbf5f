"""Keeper: the process that stays with a detached run, ``python -m torchport.launch.keeper FOLDER [LOCK,…]``.

It leads a session of its own: no closed terminal and no log-out reaches it. What it has to tell is in the run folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torchport.launch import cards
from torchport.launch.job import STOP, carry_out, finish
from torchport.launch.run_folder import read_json, read_plan, state, write_json
from torchport.plan import Plan
from torchport.process import ProgramMissing, start


def start_keeper(place: Path, environ: Mapping[str, str], locks: Sequence[int]) -> subprocess.Popen[bytes]:
    """Starts a keeper for a run folder that has its plan and its facts. It takes over the locks."""
    argv = [sys.executable, "-m", "torchport.launch.keeper", str(place), ",".join(map(str, locks))]
    # In the run folder no file of the user's can be taken for a module of ours.
    with open(place / "logs" / "keeper.log", "ab") as log:
        return start(argv, folder=str(place), environ=environ, stdout=log, apart=True, own_group=True, keep=locks)


def keep(place: Path, locks: Sequence[int], environ: Mapping[str, str]) -> int:
    """Stays with the run until it has ended and returns the script's exit code."""
    # Not ignored: that the job would inherit.
    signal.signal(signal.SIGHUP, lambda *_: None)
    plan = read_plan(place)
    if plan.wait and not locks:
        started = time.time()
        write_json(place / "state.json", state(os.getpid(), started, "waiting"))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_given_up(place)))
        taken = cards.wait_for(plan.gpus_per_node, environ=environ, run=str(place))
        plan, locks = with_cards(plan, taken.indices), taken.locks
        write_json(place / "plan.json", plan)
    try:
        return carry_out(place, plan, environ, attached=False, options=_options(place), keep=locks)
    except ProgramMissing as error:
        print(error, file=sys.stderr)
        return 127


def with_cards(plan: Plan, indices: Sequence[int]) -> Plan:
    """The plan on these cards, and no others in sight of the program."""
    seen = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, indices))}
    return replace(plan, cards=tuple(indices), env=(*plan.env, *seen.items()))


def _given_up(place: Path) -> int:
    by = (read_json(place / STOP) or {}).get("by")
    finish(place, {"code": 143, "reason": "stopped" if by else "terminated", "by": by, "seconds": 0.0})
    return 143


def _options(place: Path) -> tuple[str, ...]:
    """The options of the project's torchrun."""
    torch = (read_json(place / "facts.json") or {}).get("torch") or {}
    return tuple(torch.get("torchrun", ()))


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), [int(word) for word in sys.argv[2].split(",") if word], dict(os.environ)))

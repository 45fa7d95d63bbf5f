"""How a run stands, as its folder and the system tell it: the folder is the truth, no daemon is asked."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchport.launch import tree
from torchport.launch.activity import born, lives
from torchport.launch.run_folder import HOME, RunMissing, boot_id, read_json, read_plan
from torchport.plan import Plan


@dataclass(frozen=True, slots=True)
class Standing:
    """One run. ``phase`` is

    "waiting" (for cards), "running", "ended" (``code`` and ``reason`` say how), "lost" (nobody watches it any more;
    ``living`` are its processes that go on), "elsewhere" (it was started on ``host``, which is not this machine) or
    "unknown" (its folder says too little). ``seconds`` is how long it has run, None where nobody knows.
    """

    folder: str
    plan: Plan
    phase: str
    started: float | None = None
    seconds: float | None = None
    code: int | None = None
    reason: str | None = None
    rank: int | None = None
    pid: int | None = None
    supervisor: int | None = None
    user: str | None = None
    host: str | None = None
    living: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.folder).name

    @property
    def alive(self) -> bool:
        """Whether there is something to stop."""
        return self.phase in ("waiting", "running") or bool(self.living)


def standing(folder: Path, now: float) -> Standing:
    """How a run stands. ``now`` is the time of the day. Raises RunMissing where there is no plan to read."""
    plan = read_plan(folder)
    noted, ended = read_json(folder / "state.json") or {}, read_json(folder / "exit.json")
    known: dict[str, Any] = {name: noted.get(name) for name in ("started", "pid", "supervisor", "user", "host")}
    if ended is not None:
        told: dict[str, Any] = {name: ended.get(name) for name in ("code", "reason", "rank", "seconds")}
        return Standing(str(folder), plan, "ended", **known, **told)
    if not noted:
        return Standing(str(folder), plan, "unknown")
    if noted.get("boot") != boot_id():
        phase = "elsewhere" if noted.get("host") != platform.node() else "lost"
        return Standing(str(folder), plan, phase, **known)
    seconds = now - noted["started"] if noted.get("started") else None
    if same_process(noted.get("supervisor"), noted.get("supervisor_born")):
        return Standing(str(folder), plan, noted.get("phase", "running"), **known, seconds=seconds)
    living = set(tree.marked(folder))
    if same_process(noted.get("pid"), noted.get("born")):
        living.add(noted["pid"])
    return Standing(str(folder), plan, "lost", **known, living=tuple(sorted(living)))


def same_process(pid: Any, ticks: Any) -> bool:
    """Whether that process still lives, and is not another one with its number."""
    return isinstance(pid, int) and lives(pid) and (ticks is None or born(pid) == ticks)


def runs_of(project: Path, now: float) -> list[Standing]:
    """The runs of a project, oldest first; a folder that tells nothing is left out."""
    found = []
    for path in (project / HOME / "runs").glob("*/plan.json"):
        try:
            found.append(standing(path.parent, now))
        except RunMissing:
            continue
    return sorted(found, key=lambda one: (one.started or 0.0, one.folder))


def running_folders() -> Iterator[tuple[Path, int]]:
    """(run folder, pid) of every run on this machine that can be seen, whoever's it is.

    A keeper's command line names its folder, and most systems show it to all; what else a run has started shows it
    only to its own user.
    """
    for pid in tree.processes():
        words = tree.command(pid) or ()
        if "torchport.launch.keeper" in words:
            yield Path(words[words.index("torchport.launch.keeper") + 1]), pid
        elif run := tree.variable(pid, tree.MARK):
            yield Path(run), pid

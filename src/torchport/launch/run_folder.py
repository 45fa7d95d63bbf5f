"""The run folder ``.torchport/runs/<time>-<name>/``: how it is made and found again."""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
import time
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from torchport.launch.activity import born
from torchport.launch.tree import user_name
from torchport.plan import Plan, VirtualGpus
from torchport.text import _

HOME = ".torchport"
LATEST = "latest"


class RunMissing(Exception):
    """A run that cannot be found."""


def new_run_folder(project: Path, name: str, started: float) -> Path:
    """Makes the folder of a new run; for a project that cannot be written, among temporary files."""
    title = run_title(name, started)
    try:
        return _make(project, title)
    except OSError:
        return _make(Path(tempfile.mkdtemp(prefix="torchport-")), title)


def run_title(name: str, started: float) -> str:
    """What the folder of a run is called, unless another one of that second is."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(started))
    return f"{stamp}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:60] or 'run'}"


def home_folder(project: Path) -> Path:
    """The folder of ours in a project, made where it is missing; git does not see it."""
    home = project / HOME
    home.mkdir(parents=True, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return home


def _make(parent: Path, title: str) -> Path:
    runs = home_folder(parent) / "runs"
    runs.mkdir(exist_ok=True)
    for number in range(1, 10_000):
        folder = runs / (title if number == 1 else f"{title}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        (folder / "logs").mkdir()
        return folder
    raise FileExistsError(title)


def find_run(name: str, project: Path) -> Path:
    """The folder of a run given by its name, by a path, or as "latest". Raises RunMissing."""
    runs = project / HOME / "runs"
    if name == LATEST:
        made = sorted(runs.glob("*/plan.json"), key=lambda path: (path.stat().st_mtime_ns, path.parent.name))
        if made:
            return made[-1].parent
        raise RunMissing(f"{runs}: no run yet")
    for folder in (runs / name, Path(name)):
        if (folder / "plan.json").is_file():
            return folder
    raise RunMissing(f"{name}: no such run in {runs}")


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file by rename: no reader ever sees half of it. A full disk is no reason to stop."""
    content = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)


def state(pid: int, started: float, phase: str = "running") -> dict[str, Any]:
    """What tells a later command whether the run still lives.

    ``pid`` is the job's first process, ``supervisor`` the one that watches it; ``born`` and ``supervisor_born``
    are when the system started them, in its own ticks, since numbers of processes are used again.
    """
    return {
        "pid": pid,
        "started": started,
        "boot": boot_id(),
        "host": platform.node(),
        "user": user_name(os.getuid()),
        "phase": phase,
        "born": born(pid),
        "supervisor": os.getpid(),
        "supervisor_born": born(os.getpid()),
    }


def boot_id() -> str | None:
    """What the system calls the time since it was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, None where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def read_plan(folder: Path) -> Plan:
    """The plan in a run folder. Raises RunMissing where it cannot be read, or is of another version."""
    document = read_json(folder / "plan.json")
    if document is None:
        raise RunMissing(_("{path}: there is no plan that can be read").format(path=folder / "plan.json"))
    virtual = document.pop("virtual", None)
    document["env"] = tuple((name, value) for name, value in document.get("env", ()))
    for name in ("argv", "cards"):
        document[name] = tuple(document.get(name, ()))
    try:
        return Plan(**document, virtual=VirtualGpus(**virtual) if virtual else None)
    except TypeError as error:
        raise RunMissing(f"{folder / 'plan.json'}: {error}") from error

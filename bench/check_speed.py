"""How fast ``check`` reads a tree, and what it finds of planted faults, beside TorchFix and torch-preflight.

    python bench/check_speed.py TREE [--peers VENV] [--rounds 3]

TREE is any folder with Python files. The peers are installed into VENV where it lacks them. All read the same files
in the same run; medians are shown, with how many times longer each took. The planted faults are those of
``tests/projects/*/faulty``, told by comments that the copies do not have; a fault counts as found where a tool says
anything at one of its two lines, or at the line before or after.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = ROOT / "tests" / "projects"
PEERS = ("torchfix==0.7.0", "torch-preflight==0.5.0")
MARK = re.compile(r"(?:BORN|MEET) (\d+)(?: R\d+)?")
PLACE = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<line>\d+)", re.MULTILINE)

Place = tuple[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--peers", type=Path, default=Path.home() / ".cache" / "torchport" / "check-peers")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    tools = {"torchport": [sys.executable, "-m", "torchport", "check", "--fail-on", "error"], **peers(options.peers)}
    files = [path for path in options.tree.rglob("*.py") if path.is_file()]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"{len(files)} files, {lines} lines; seconds, medians of {options.rounds}")
    seconds = {name: timed(name, command, options.tree, options.rounds) for name, command in tools.items()}
    fastest = seconds["torchport"]
    for name, value in seconds.items():
        print(f"  {name:18}{value:8.2f}{value / fastest:8.1f} x {lines / value / 1000:10.1f} thousand lines a second")
    print("planted faults found")
    total, found = planted(tools)
    for name, count in found.items():
        print(f"  {name:18}{count:4} of {total}")


def peers(venv: Path) -> dict[str, list[str]]:
    """The peers' commands; makes their environment where it is missing."""
    folder = venv / "bin"
    if not (folder / "torchfix").exists() or not (folder / "torch-preflight").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(folder / "python"), "-m", "pip", "install", "-q", *PEERS, "setuptools<81"], check=True)
    return {
        "TorchFix": [str(folder / "torchfix"), "--select", "ALL"],
        "torch-preflight": [str(folder / "torch-preflight"), "check"],
    }


# Each tool may keep its own compiled modules, as it does where it is installed.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(name: str, command: list[str], tree: Path, rounds: int) -> float:
    """Median seconds for the tree, each time without what an earlier run has kept."""
    taken = []
    for _round in range(rounds):
        with fresh(tree) as copy:
            started = time.perf_counter()
            subprocess.run([*command, "."], cwd=copy, capture_output=True, text=True, env=ENVIRON)
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


class fresh:
    """A copy of a tree, gone afterwards; ``text`` changes each file."""

    def __init__(self, tree: Path, text: Callable[[str], str] | None = None) -> None:
        self.tree, self.text = tree, text

    def __enter__(self) -> Path:
        self.folder = tempfile.mkdtemp()
        copy = Path(self.folder, "tree")
        shutil.copytree(
            self.tree, copy, ignore=lambda _folder, names: [n for n in names if n in (".git", ".torchport")]
        )
        for path in copy.rglob("*.py") if self.text else ():
            path.write_text(self.text(path.read_text(encoding="utf-8")), encoding="utf-8")
        return copy

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def faults(folder: Path) -> Iterator[set[Place]]:
    """The lines of each fault of a project."""
    found: dict[str, set[Place]] = {}
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for mark in MARK.finditer(line):
                found.setdefault(mark[1], set()).add((path.relative_to(folder).as_posix(), number))
    yield from found.values()


def planted(tools: dict[str, list[str]]) -> tuple[int, dict[str, int]]:
    total, found = 0, dict.fromkeys(tools, 0)
    for folder in sorted(PROJECTS.glob("*/faulty")):
        wanted = list(faults(folder))
        total += len(wanted)
        with fresh(folder, lambda text: MARK.sub("", text)) as copy:
            for name, command in tools.items():
                done = subprocess.run([*command, *form(name), "."], cwd=copy, capture_output=True, text=True)
                said = set(places(name, done.stdout))
                found[name] += sum(
                    any((path, line + off) in said for path, line in places_of for off in (-1, 0, 1))
                    for places_of in wanted
                )
    return total, found


def form(name: str) -> list[str]:
    return ["--format", "json"] if name in ("torchport", "torch-preflight") else []


def places(name: str, text: str) -> Iterator[Place]:
    """Where a tool says anything."""
    if name == "torchport":
        for each in json.loads(text)["findings"]:
            for place in (each, *each["evidence"]):
                yield place["path"].removeprefix("./"), place["line"]
        return
    if name == "torch-preflight":
        for each in json.loads(text)["diagnostics"]:
            yield each["path"].removeprefix("./"), each["line"]
        return
    for match in PLACE.finditer(text):
        yield match["path"].removeprefix("./"), int(match["line"])


if __name__ == "__main__":
    main()

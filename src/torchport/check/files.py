"""The files of a project that rules read, each with its kind, in a fixed order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

# Folders that hold what others wrote, or what a program made.
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {"__pycache__", "node_modules", "site-packages", "build", "dist", ".torchport", ".ipynb_checkpoints", ".eggs"}
)
MOST_BYTES = 5_000_000  # a source that is longer was not written by hand; a notebook may hold pictures
MOST_NOTEBOOK_BYTES = 50_000_000

_KINDS = (
    ("python", r".*\.pyw?"),
    ("notebook", r".*\.ipynb"),
    ("shell", r".*\.(?:sh|bash|zsh|slurm|sbatch|pbs)"),
    ("dockerfile", r"(?:docker|container)file(?:[._-].*)?|.*\.(?:docker|container)file"),
    ("makefile", r"(?:gnu)?makefile|.*\.mk"),
    ("compose", r"(?:docker-)?compose(?:[._-].*)?\.ya?ml"),
    ("yaml", r".*\.ya?ml"),
    ("requirements", r".*(?:requirements|constraints)[^/]*\.(?:txt|in)"),
    ("markdown", r".*\.md"),
)
_BY_NAME = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS), re.IGNORECASE)


def kind_of(path: str) -> str:
    """What a file is, by its name; empty for one that no rule reads."""
    head, _slash, name = path.rpartition("/")
    match = _BY_NAME.fullmatch(name)
    if match:
        return str(match.lastgroup)
    return "requirements" if head.rpartition("/")[2] == "requirements" and name.endswith((".txt", ".in")) else ""


def find(path: Path, exclude: Sequence[str] = ()) -> Iterator[Path]:
    """The files below a folder that rules read, or the one file that is given, whatever its name.

    ``exclude`` are patterns as of Path.match: a name, or the end of a path.
    """
    if not path.is_dir():
        yield path
        return
    yield from (Path(found) for found in _walk(str(path), exclude))


def _walk(folder: str, exclude: Sequence[str]) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or (exclude and any(PurePath(entry.path).match(pattern) for pattern in exclude)):
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                yield from _walk(entry.path, exclude)
        elif kind_of(entry.path.replace(os.sep, "/")) and entry.is_file():
            yield entry.path

"""What git says of a project; a project without git, and a machine without it, have nothing to say."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from torchport.process import ProgramMissing, ProgramTimeout, run


def changed(project: Path, but: str) -> list[str]:
    """The files of the whole work tree that are not committed, as seen from the project; ``but`` names ours."""
    top = _git(project, "rev-parse", "--show-toplevel")
    told = _git(project, "status", "--porcelain", "-z") if top else None
    if not top or not told:
        return []
    rows = iter(told.split("\0"))
    found = []
    for row in rows:
        if row[:1] in ("R", "C"):  # the name that it had follows
            next(rows, None)
        path = os.path.relpath(os.path.join(top.rstrip("\n"), row[3:]), project.resolve()) if row else but
        if path != but:
            found.append(path)
    return found


def keeps(project: Path, paths: Iterable[str]) -> bool:
    """Whether git has all these files, so that it can tell what they were."""
    return _git(project, "ls-files", "--error-unmatch", "--", *paths) is not None


def _git(project: Path, *words: str) -> str | None:
    try:
        done = run(["git", *words], folder=str(project))
    except (ProgramMissing, ProgramTimeout):
        return None
    return done.stdout if done.code == 0 else None

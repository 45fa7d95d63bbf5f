"""Many files at once: in several processes where that pays, in a fixed order in any case."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from torchport.check.engine import Checked, check_file
from torchport.check.siblings import Siblings
from torchport.text import set_language

WORTH_IT = 50  # files that say torch; below, starting processes takes longer than the check
_PORTION = 8

Job = tuple[str, bytes]


def check_files(jobs: Sequence[Job], torch: tuple[int, int] | None, language: str, siblings: Siblings) -> list[Checked]:
    """What each file gave, in the order of the jobs (path, bytes)."""
    processes = min(os.cpu_count() or 1, 8)
    if processes > 1 and sum(b"torch" in data for _path, data in jobs) >= WORTH_IT:
        portions = [jobs[start : start + _PORTION] for start in range(0, len(jobs), _PORTION)]
        begin = (siblings.folder, siblings.root, torch, language)
        try:
            with ProcessPoolExecutor(processes, multiprocessing.get_context(_method()), _begin, begin) as pool:
                return [checked for portion in pool.map(_portion, portions) for checked in portion]
        except (BrokenProcessPool, OSError):
            pass  # no semaphores, no memory, no processes: one after the other then
    return [check_file(path, data, torch, siblings=siblings) for path, data in jobs]


def _method() -> str:
    """A fork is ten times faster to start, and safe only where nothing else runs in this process."""
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def _begin(folder: Path, root: Path, torch: tuple[int, int] | None, language: str) -> None:
    """What all portions share. Ctrl-C is for the process that waits for us."""
    global _siblings, _torch
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_language(language)
    _siblings, _torch = Siblings(folder, root), torch


_siblings: Siblings | None = None
_torch: tuple[int, int] | None = None


def _portion(jobs: Sequence[Job]) -> list[Checked]:
    return [check_file(path, data, _torch, siblings=_siblings) for path, data in jobs]

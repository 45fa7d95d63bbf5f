"""Process: one rank of a job, rendered and ready to start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Process:
    """One rank. ``env`` is set beside the inherited environment; without ``log_path`` it shares the terminal.

    ``spec`` is the text of ``spec_path``, the file that tells the process what to run, if it needs one; it is
    written before the start.
    """

    rank: int
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    record_path: str
    log_path: str | None
    spec_path: str | None = None
    spec: str = ""

"""The records of a job that has ended, completed by what only its supervisor saw."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchport import __version__
from torchport.facts import Facts
from torchport.launch import postscript
from torchport.launch.postscript import Seen
from torchport.launch.processes import Process
from torchport.launch.supervise import Ending
from torchport.plan import Plan
from torchport.record import Record, RecordError, read


def collect(folder: Path, plan: Plan, facts: Facts, processes: Sequence[Process], ending: Ending) -> tuple[Record, ...]:
    """All records in the run folder, by rank; one that cannot be read is left out."""
    for process, code in zip(processes, ending.codes, strict=True):
        header = {
            "version": __version__,
            "rank": process.rank,
            "world": plan.processes,
            "plan": asdict(plan),
            "facts": asdict(facts),
        }
        seen = _seen(facts, ending) if process.rank == 0 else ()
        # A full disk: the process has said so, and what it wrote before can be read.
        with suppress(OSError):
            postscript.add(Path(process.record_path), header, seen, _exit(ending, code))
    found = []
    for path in sorted(folder.glob("record*.jsonl")):
        with suppress(RecordError):
            found.append(read(path))
    return tuple(sorted(found, key=lambda record: record.rank))


def _exit(ending: Ending, code: int) -> dict[str, Any] | None:
    """How a process ended that could not say it itself; None where it was killed and nobody knows why."""
    if ending.reason in ("interrupted", "timeout", "hung"):
        reason = ending.reason
    elif ending.verdict is not None and code < 0:
        reason = "hung"
    elif code > 0:
        reason = "error"
    else:
        return None
    return {"code": code, "reason": reason, "error": None, "seconds": round(ending.seconds, 3)}


def _seen(facts: Facts, ending: Ending) -> tuple[Seen, ...]:
    verdict = ending.verdict
    hang = (Seen(verdict.id, "error", verdict.fields, verdict.site),) if verdict else ()
    gpus = (Seen("R504", "info", {"what": ", ".join(facts.gpus)}),) if facts.gpus else ()
    return (*hang, *gpus)

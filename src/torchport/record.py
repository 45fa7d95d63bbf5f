"""Record: what happened in one run, as JSON lines that survive whatever ends the run.

A record is a text file with one JSON object a line. The first line is the header, every other line an event
with a ``kind``. Lines are written whole with ``os.write``, so that a killed process loses at most the events
of the step it was in; a reader ignores a torn last line. Totals are snapshots: the last one holds.

Kinds of event (``site`` is a number that a ``site`` event explained before):

=========== ===========================================================================================
header      schema, version, rank, world, pid, started (Unix seconds), plan, facts
site        id, path (relative to the project where it lies in it), line, function
finding     number, id (R…), severity, site (where it showed), fields (plain JSON, as the id asks), step
loss        step, value (float.hex() text), site
step        number, seconds, ops, syncs, h2d/d2h/d2d (count, bytes), loader_s, allocated, peak (bytes a GPU)
memory      gpu, step, points ([operator index, bytes allocated], …), downsampled
peak        gpu, bytes, step, holders ([what, module or null, site or null, bytes, tensors], …), largest first
collective  group, sequence (counts the group's calls, from 1), op, shapes, dtype, bytes, site, state ("enter" or
            "leave"), ranks (the group's, null for all)
rank        rank, world (of a process that the program started, once it has joined its job)
totals      operators ([op, count], …), syncs ([site, op, count], …), draws ([site, op, count], …),
            transfers ([site, direction, pinned, count, bytes], …), findings ([number, count], …)
exit        code, reason (finished, exited, steps, error, interrupted, timeout, oom, hung), error, seconds
=========== ===========================================================================================
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1

Json = dict[str, Any]


class RecordError(Exception):
    """A record that cannot be read: missing, empty, not a record, or from a newer torchport."""


class RecordWriter:
    """Appends events to one record file.

    Events wait in memory until ``flush``; a disk that fills up ends the recording with one line on standard
    error and never the run.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        self.path = os.fspath(path)
        self.broken: str | None = None
        self._owner = os.getpid()
        self._waiting: list[str] = []
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.write({"kind": "header", "schema": SCHEMA, "started": time.time(), **header})
        self.flush()

    def write(self, event: Mapping[str, Any]) -> None:
        """Queues one event; it reaches the file at the next ``flush``."""
        self._waiting.append(json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str))

    def flush(self) -> None:
        """Writes all waiting events in one system call where the system allows it."""
        if not self._waiting or self.broken or os.getpid() != self._owner:
            self._waiting.clear()
            return
        data = ("\n".join(self._waiting) + "\n").encode("utf-8", "surrogatepass")
        self._waiting.clear()
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self.broken = error.strerror or str(error)
            # The record is worth less than the user's run: say it once and go on.
            print(f"torchport: the record stops here, {self.path}: {self.broken}", file=sys.stderr)

    def close(self) -> None:
        """Flushes and closes; a second call does nothing."""
        if self._fd >= 0:
            self.flush()
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source: ``path`` is relative to the project for files inside it."""

    path: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Observation:
    """One fault or remark of a run, as the process wrote it; ``count`` is how often it showed."""

    number: int
    id: str
    severity: str
    site: Site | None
    fields: Json
    step: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Loss:
    """The value on which ``backward()`` was called."""

    step: int
    value: float
    site: Site | None


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step. Transfers are (count, bytes); memory is bytes a GPU."""

    number: int
    seconds: float
    ops: int
    syncs: int
    h2d: tuple[int, int]
    d2h: tuple[int, int]
    d2d: tuple[int, int]
    loader_s: float
    allocated: tuple[int, ...]
    peak: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """What holds memory at the peak.

    ``what`` is parameter, buffer, gradient, optimizer state, activation or other.
    """

    what: str
    module: str | None
    site: Site | None
    bytes: int
    tensors: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest number of bytes allocated on one GPU, and what held them."""

    gpu: int
    bytes: int
    step: int
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What happened in one process of one run. ``exit`` is None when the process was killed.

    ``gpu_bytes`` is all that was ever allocated on its GPUs, None where nobody counted.
    """

    path: str
    header: Json
    findings: tuple[Observation, ...] = ()
    losses: tuple[Loss, ...] = ()
    steps: tuple[Step, ...] = ()
    memory: tuple[Json, ...] = ()
    peaks: tuple[Peak, ...] = ()
    collectives: tuple[Json, ...] = ()
    operators: tuple[tuple[str, int], ...] = ()
    syncs: tuple[tuple[Site | None, str, int], ...] = ()
    draws: tuple[tuple[Site | None, str, int], ...] = ()
    transfers: tuple[tuple[Site | None, str, bool, int, int], ...] = ()
    gpu_bytes: int | None = None
    exit: Json | None = None
    torn: bool = field(default=False)

    @property
    def rank(self) -> int:
        return int(self.header.get("rank", 0))


def read(path: str | os.PathLike[str]) -> Record:
    """Reads a record, whole or torn.

    Raises RecordError, with the path and what to do, for a file that is missing, empty, not a record, or
    written by a newer torchport.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise RecordError(f"{name}: cannot be read: {error.strerror}") from error
    torn = bool(lines[-1])
    events: list[Json] = []
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            # Decoded line by line: a torn one may end inside a character.
            event = json.loads(line.decode("utf-8", "surrogatepass"))
        except ValueError:
            if number < len(lines) - 1:
                raise RecordError(f"{name}: line {number} is not JSON; this is not a torchport record") from None
            torn = True
            break
        if not isinstance(event, dict):
            raise RecordError(f"{name}: line {number} is not a JSON object; this is not a torchport record")
        events.append(event)
    if not events or events[0].get("kind") != "header":
        raise RecordError(f"{name}: has no header line; this is not a torchport record")
    schema = events[0].get("schema")
    if not isinstance(schema, int):
        raise RecordError(f"{name}: its header has no schema number; this is not a torchport record")
    if schema > SCHEMA:
        raise RecordError(
            f"{name}: written by torchport {events[0].get('version', '?')} with record schema {schema}; "
            f"this torchport reads up to schema {SCHEMA}: upgrade torchport to read it"
        )
    try:
        return _assemble(name, events, torn)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise RecordError(f"{name}: an event is not as schema {schema} has it ({said})") from error


def _assemble(name: str, events: list[Json], torn: bool) -> Record:
    by_kind: dict[str, list[Json]] = {}
    for event in events:
        by_kind.setdefault(str(event.get("kind")), []).append(event)
    sites = {e["id"]: Site(e["path"], e["line"], e.get("function", "")) for e in by_kind.get("site", ())}
    totals = by_kind.get("totals", [{}])[-1]
    counts = dict(totals.get("findings", ()))

    def placed(rows: Iterable[list[Any]]) -> tuple[Any, ...]:
        return tuple((sites.get(row[0]), *row[1:]) for row in rows)

    return Record(
        path=name,
        header={**events[0], **{key: e[key] for e in by_kind.get("rank", ()) for key in ("rank", "world")}},
        findings=tuple(
            Observation(
                e["number"],
                e["id"],
                e["severity"],
                sites.get(e.get("site")),
                _with_sites(e.get("fields", {}), sites),
                e.get("step", 0),
                counts.get(e["number"], 1),
            )
            for e in by_kind.get("finding", ())
        ),
        losses=tuple(
            Loss(e["step"], float.fromhex(e["value"]), sites.get(e.get("site"))) for e in by_kind.get("loss", ())
        ),
        steps=tuple(
            Step(
                e["number"],
                e["seconds"],
                e["ops"],
                e["syncs"],
                tuple(e["h2d"]),
                tuple(e["d2h"]),
                tuple(e["d2d"]),
                e["loader_s"],
                tuple(e["allocated"]),
                tuple(e["peak"]),
            )
            for e in by_kind.get("step", ())
        ),
        memory=tuple(by_kind.get("memory", ())),
        peaks=_peaks(by_kind.get("peak", ()), sites),
        collectives=tuple({**e, "site": sites.get(e.get("site"))} for e in by_kind.get("collective", ())),
        operators=tuple((op, count) for op, count in totals.get("operators", ())),
        syncs=placed(totals.get("syncs", ())),
        draws=placed(totals.get("draws", ())),
        transfers=placed(totals.get("transfers", ())),
        gpu_bytes=totals.get("gpu_bytes"),
        exit=_exit(by_kind["exit"][-1], sites) if "exit" in by_kind else None,
        torn=torn,
    )


def _with_sites(value: Any, sites: Mapping[int, Site]) -> Any:
    """Replaces ``{"site": 7}`` by the Site, at any depth."""
    if isinstance(value, dict):
        if value.keys() == {"site"}:
            return sites.get(value["site"])
        return {key: _with_sites(item, sites) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_sites(item, sites) for item in value]
    return value


def _exit(event: Json, sites: Mapping[int, Site]) -> Json:
    """How the process ended, with the place of an uncaught exception as a Site."""
    error = event.get("error")
    if not isinstance(error, dict):
        return event
    return {**event, "error": {**error, "site": sites.get(error.get("site", 0))}}


def _peaks(events: Iterable[Json], sites: Mapping[int, Site]) -> tuple[Peak, ...]:
    latest = {e["gpu"]: e for e in events}
    return tuple(
        Peak(
            e["gpu"],
            e["bytes"],
            e["step"],
            tuple(Holder(what, module, sites.get(site), size, n) for what, module, site, size, n in e["holders"]),
        )
        for e in latest.values()
    )

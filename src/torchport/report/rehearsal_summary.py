"""What all reports of a rehearsal say first, and the sums they share."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from torchport.finding import Severity
from torchport.hardware.gpus import GpuSpec, UnknownGpu, lookup
from torchport.plan import Plan, Run
from torchport.record import Peak, Record, Site
from torchport.text import _, mark, ngettext

DIRECTIONS = {"h2d": mark("to GPU"), "d2h": mark("to host"), "d2d": mark("GPU to GPU")}

HOLDERS = {
    "parameter": mark("parameter"),
    "buffer": mark("buffer"),
    "gradient": mark("gradient"),
    "optimizer state": mark("optimizer state"),
    "activation": mark("activation"),
    "other": mark("other"),
}

_WAITS = {"_local_scalar_dense": "item()", "copy h2d": mark("copy to GPU"), "copy d2h": mark("copy to host")}


@dataclass(frozen=True, slots=True)
class LossTrace:
    """The losses of one rank from one line; a program with two networks has several."""

    rank: int
    site: Site | None
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """Transfers of one kind from one line, over all ranks."""

    site: Site | None
    direction: str
    pinned: bool
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums over all ranks. Times are means of a step; of ``steps``, the rank that came furthest counts, while
    ``rank_steps`` adds up all ranks."""

    steps: int
    rank_steps: int
    step_seconds: float | None
    loader_seconds: float | None
    losses: tuple[LossTrace, ...]
    peaks: tuple[tuple[int, Peak], ...]
    transfers: tuple[Moved, ...]
    syncs: tuple[tuple[Site | None, str, int], ...]
    operators: tuple[tuple[str, int], ...]


def summarise(run: Run) -> Summary:
    """The sums, each list largest first."""
    steps = [step for record in run.records for step in record.steps]
    return Summary(
        steps=max((len(record.steps) for record in run.records), default=0),
        rank_steps=len(steps),
        step_seconds=sum(step.seconds for step in steps) / len(steps) if steps else None,
        loader_seconds=sum(step.loader_s for step in steps) / len(steps) if steps else None,
        losses=tuple(trace for record in run.records for trace in _losses(record)),
        peaks=tuple((record.rank, peak) for record in run.records for peak in record.peaks if peak.bytes),
        transfers=_transfers(run.records),
        syncs=_syncs(run.records),
        operators=tuple(Counter(_sums(run.records)).most_common()),
    )


def _sums(records: tuple[Record, ...]) -> Counter[str]:
    total: Counter[str] = Counter()
    for record in records:
        for op, count in record.operators:
            total[op.removeprefix("aten::").partition(".")[0]] += count
    return total


def _losses(record: Record) -> list[LossTrace]:
    traces: dict[Site | None, list[tuple[int, float]]] = {}
    for loss in record.losses:
        traces.setdefault(loss.site, []).append((loss.step, loss.value))
    return [LossTrace(record.rank, site, tuple(points)) for site, points in traces.items()]


def _transfers(records: tuple[Record, ...]) -> tuple[Moved, ...]:
    total: dict[tuple[Site | None, str, bool], tuple[int, int]] = {}
    for record in records:
        for site, direction, pinned, count, size in record.transfers:
            before = total.get((site, direction, pinned), (0, 0))
            total[site, direction, pinned] = (before[0] + count, before[1] + size)
    rows = (Moved(*key, *sums) for key, sums in total.items())
    return tuple(sorted(rows, key=lambda row: row.bytes, reverse=True))


def _syncs(records: tuple[Record, ...]) -> tuple[tuple[Site | None, str, int], ...]:
    total: Counter[tuple[Site | None, str]] = Counter()
    for record in records:
        for site, op, count in record.syncs:
            total[site, op] += count
    return tuple((site, op, count) for (site, op), count in total.most_common())


def wait_name(op: str) -> str:
    """What the host waits for, as users know it."""
    return _(_WAITS[op]) if op in _WAITS else op


def program(plan: Plan) -> str:
    """What was run, as its user names it."""
    name = plan.argv[0] if plan.argv else "?"
    if plan.kind == "module":
        return f"-m {name}" if name != "-m" else " ".join(plan.argv[:2])
    relative = os.path.relpath(name, plan.folder) if os.path.isabs(name) else name
    return name if relative.startswith("..") else relative


def card(plan: Plan) -> GpuSpec | None:
    """The virtual card, where this version knows it."""
    try:
        return lookup(plan.virtual.gpu) if plan.virtual else None
    except UnknownGpu:
        return None


def gpu_name(plan: Plan) -> str:
    """The card as the headline names it: "A100-SXM4-80GB"."""
    spec = card(plan)
    if spec is not None:
        return spec.name.removeprefix("NVIDIA ")
    return plan.virtual.gpu if plan.virtual else ""


def headline(run: Run, steps: int) -> str:
    """What ran where, how far it came, and what was found: the one line to read."""
    errors = sum(finding.severity is Severity.ERROR for finding in run.findings)
    warnings = sum(finding.severity is Severity.WARNING for finding in run.findings)
    found = [
        ngettext("{count} step", "{count} steps", steps).format(count=steps),
        ngettext("{count} fault", "{count} faults", errors).format(count=errors) if errors else _("no faults"),
    ]
    if warnings:
        found.append(ngettext("{count} warning", "{count} warnings", warnings).format(count=warnings))
    plan = run.plan
    if plan.virtual is None or plan.virtual.plain:
        start = _("ran {program} on the CPU").format(program=program(plan))
    else:
        start = _("rehearsed {program} on {gpus} × {gpu} (virtual)").format(
            program=program(plan), gpus=plan.nodes * plan.gpus_per_node, gpu=gpu_name(plan)
        )
    return _("{start}: {found}").format(start=start, found=_(", ").join(found))


_ENDINGS = {
    "steps": mark("ended after {steps} steps, as --steps asked"),
    "error": mark("the program failed: {error}"),
    "interrupted": mark("interrupted in step {next}"),
    "timeout": mark("stopped by --timeout in step {next}"),
    "oom": mark("stopped, because the tensors do not fit on the card"),
    "hung": mark("stopped, because the ranks wait for each other"),
    "killed": mark("the process was killed in step {next}; what was recorded until then is below"),
}


def ending(run: Run) -> tuple[str, bool]:
    """How the run ended, if not by itself, and whether that is bad; the worst of its ranks speaks."""
    worst, bad = "", False
    for record in run.records:
        left = record.exit or {"reason": "killed"}
        reason = str(left.get("reason"))
        if reason == "finished" or (worst and (bad or reason == "steps")):
            continue
        steps = len(record.steps)
        error = _error(left.get("error")) or _("exit code {code}").format(code=left.get("code"))
        worst = _(_ENDINGS.get(reason, _ENDINGS["error"])).format(steps=steps, next=steps + 1, error=error)
        if len(run.records) > 1:
            worst = _("rank {rank}: {ending}").format(rank=record.rank, ending=worst)
        bad = reason != "steps"
    return worst, bad


def _error(error: object) -> str:
    """``ValueError: …``, with its line where the record has one."""
    if not isinstance(error, dict):
        return str(error or "")
    # The traceback has been on the screen; one line is enough here.
    message = str(error.get("message") or "").strip().partition("\n")[0]
    said = ": ".join(filter(None, (str(error.get("type") or ""), message)))
    place = error.get("site")
    return _("{error}, at {place}").format(error=said, place=place) if isinstance(place, Site) else said


def limits() -> str:
    """What no rehearsal shows."""
    return _("A rehearsal cannot show GPU speed, GPU rounding (TF32, order of sums) or faults of drivers.")

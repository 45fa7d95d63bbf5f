"""Findings that no single event shows, only the numbers of many steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from torchport.explain.rehearsal_ids import REHEARSAL_IDS
from torchport.explain.rehearsal_words import location
from torchport.finding import Confidence, Evidence, Finding, Severity
from torchport.record import Record, Site
from torchport.text import _, binary_size, mark

# A place that waits fewer times in all says nothing about steps.
_LEAST_WAITS = 3
# A value or two read a step is how people log a loss; from here on it slows the step down.
_OFTEN = 2.5
# Copies to the GPU are shown as transfers; what the loss scaler reads, no change of the user's can spare.
_UNAVOIDABLE = frozenset({"copy h2d", "GradScaler"})
_LEAST_GROWTHS = 5
# Batches of random length grow in half of all steps; a leak grows in nearly all.
_MOSTLY = 0.75

_WAITS = {
    "_local_scalar_dense": mark("reading a value of a GPU tensor (`item()`, `float()`, `if`)"),
    "copy d2h": mark("a blocking copy to the host"),
}


def findings(records: tuple[Record, ...]) -> list[Finding]:
    """What the totals and the steps of all ranks show."""
    return [*_idle(records), *_syncs(records), *_growth(records), *_draws(records)]


def _idle(records: tuple[Record, ...]) -> Iterator[Finding]:
    """R205: a program that has computed, and on no rank has a GPU."""
    ended = all(record.steps or (record.exit or {}).get("reason") != "error" for record in records)
    if records and ended and all(record.gpu_bytes == 0 and record.operators for record in records):
        row = REHEARSAL_IDS["R205"]
        yield Finding(id=row.id, message=_(row.statement), severity=row.severity, remedy=_(row.fix))


def _syncs(records: tuple[Record, ...]) -> Iterator[Finding]:
    """R201: places that wait for the GPU in most steps. Blocking copies to it count as transfers."""
    steps = sum(len(record.steps) for record in records)
    counts: Counter[tuple[Site, str]] = Counter()
    ranks: dict[tuple[Site, str], set[int]] = {}
    for record in records:
        for site, op, count in record.syncs:
            if site is not None and op not in _UNAVOIDABLE:
                counts[site, op] += count
                ranks.setdefault((site, op), set()).add(record.rank)
    for (site, op), count in counts.items():
        if count < _LEAST_WAITS or count * 2 < steps or not steps:
            continue
        row = REHEARSAL_IDS["R201"]
        yield Finding(
            id=row.id,
            message=_(row.statement).format(op=_(_WAITS[op]) if op in _WAITS else f"`{op}`", count=count, steps=steps),
            severity=Severity.WARNING if count >= _OFTEN * steps else Severity.INFO,
            location=location(site),
            remedy=_(row.fix),
            count=count,
            ranks=tuple(sorted(ranks[site, op])) if len(records) > 1 else (),
        )


def _growth(records: tuple[Record, ...]) -> list[Finding]:
    """R302: memory at the end of a step that grows from step to step, told once for all ranks."""
    seen: dict[Site | None, Finding] = {}
    for record in records:
        for gpu in range(max((len(step.allocated) for step in record.steps), default=0)):
            held = [(step.number, step.allocated[gpu]) for step in record.steps if gpu < len(step.allocated)]
            grown = _longest_growth(held)
            if grown is None:
                continue
            (first, low), (last, high) = grown
            row = REHEARSAL_IDS["R302"]
            amount = binary_size((high - low) / (last - first))
            site = _hoarder(record, gpu, last - first)
            ranks = (record.rank,) if len(records) > 1 else ()
            if site in seen:
                seen[site] = replace(seen[site], ranks=(*seen[site].ranks, *ranks))
                continue
            seen[site] = Finding(
                id=row.id,
                message=_(row.statement).format(device=f"cuda:{gpu}", amount=amount, first=first, last=last),
                severity=row.severity,
                confidence=Confidence.LIKELY,
                location=location(site),
                evidence=(Evidence(f"{binary_size(low)} → {binary_size(high)}"),),
                remedy=_(row.fix),
                ranks=ranks,
            )
    return list(seen.values())


def _longest_growth(held: list[tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """First and last point of the longest strict growth, if there is enough of it to be a leak."""
    best = start = growths = 0
    found = None
    for index in range(1, len(held)):
        if held[index][1] > held[index - 1][1]:
            growths += 1
            if index - start > best:
                best, found = index - start, (held[start], held[index])
        else:
            start = index
    enough = best >= _LEAST_GROWTHS and growths >= _MOSTLY * (len(held) - 1)
    return found if enough else None


def _hoarder(record: Record, gpu: int, steps: int) -> Site | None:
    """The place whose tensors fill most of the peak, of those that hold at least one for every step grown."""
    for peak in record.peaks:
        if peak.gpu == gpu:
            for holder in peak.holders:
                if holder.site is not None and holder.tensors >= steps and holder.what in {"activation", "other"}:
                    return holder.site
    return None


def _draws(records: tuple[Record, ...]) -> Iterator[Finding]:
    """R506: every place that draws on the device, since a real card draws other numbers."""
    counts: Counter[tuple[Site | None, str]] = Counter()
    for record in records:
        for site, op, count in record.draws:
            counts[site, op] += count
    if counts:
        row = REHEARSAL_IDS["R506"]
        places = sorted(counts.items(), key=lambda item: (str(item[0][0]), item[0][1]))
        yield Finding(
            id=row.id,
            message=_(row.statement).format(count=sum(counts.values())),
            severity=row.severity,
            evidence=tuple(Evidence(f"`{op}` ×{count}", location(site)) for (site, op), count in places),
            remedy=_(row.fix),
        )

"""The charts of a rehearsal: memory, loss, transfers and waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchport.plan import Run
from torchport.record import Record, Step
from torchport.report.charts import Chart, Point, bars, in_bytes, lines, whole
from torchport.report.rehearsal_summary import DIRECTIONS, Summary
from torchport.text import _, binary_size

MOST_LINES = 8
MOST_MARKS = 60  # steps marked in the memory chart; more would be a grey wall


@dataclass(frozen=True, slots=True)
class Graph:
    """A chart with its title and what it counts."""

    title: str
    unit: str
    chart: Chart


def graphs(run: Run, summary: Summary) -> list[Graph]:
    """Those for which the run recorded anything."""
    steps = _by_number(run.records)
    found = (
        (_("Memory"), _("bytes allocated, step by step"), _memory(run.records)),
        (_("Loss"), _("by step"), _loss(summary)),
        (_("Transfers"), _("bytes moved in a step"), _transfers(steps)),
        (_("Waits"), _("times the host waits in a step"), _waits(steps)),
    )
    return [Graph(title, unit, chart) for title, unit, chart in found if chart]


def _memory(records: tuple[Record, ...]) -> Chart | None:
    series: list[tuple[str, Sequence[Point]]] = []
    for record in records:
        for gpu in sorted({int(event["gpu"]) for event in record.memory}):
            points = _timeline(record, gpu)
            if any(size for _at, size in points):
                several = " " + _("rank {rank}").format(rank=record.rank) if len(records) > 1 else ""
                series.append((f"cuda:{gpu}{several}", points))
    last = max((step.number for record in records for step in record.steps), default=0)
    marks = range(1, last) if last <= MOST_MARKS else ()
    ends = (_("step {number}").format(number=1), str(last)) if last > 1 else (_("start"), _("end"))
    return lines(series[:MOST_LINES], ends=ends, words=in_bytes, filled=True, marks=marks)


def _timeline(record: Record, gpu: int) -> list[Point]:
    """Bytes on one card; step n lies between n - 1 and n. A step without a curve shows its peak."""
    curves: dict[int, list[Point]] = {}
    for event in record.memory:
        if event["gpu"] == gpu and event["points"]:
            number = event["step"] or 1
            while number in curves:  # what came after the last step
                number += 1
            width = event["points"][-1][0] + 1
            curves[number] = [(number - 1 + at / width, float(size)) for at, size in event["points"]]
    for step in record.steps:
        if step.number not in curves and gpu < len(step.peak):
            curves[step.number] = [(step.number - 0.5, float(step.peak[gpu]))]
    return [point for _number, points in sorted(curves.items()) for point in points]


def _loss(summary: Summary) -> Chart | None:
    several_sites = len({trace.site for trace in summary.losses}) > 1
    several_ranks = len({trace.rank for trace in summary.losses}) > 1
    series = []
    for trace in summary.losses[:MOST_LINES]:
        site = str(trace.site) if several_sites and trace.site else ""
        rank = _("rank {rank}").format(rank=trace.rank) if several_ranks else ""
        points = [(float(step), value) for step, value in trace.points]
        series.append((" ".join(filter(None, (rank, site))) or _("loss"), points))
    steps = [step for trace in summary.losses for step, _value in trace.points]
    return lines(series, ends=_step_ends(min(steps), max(steps)) if steps else ())


def _by_number(records: tuple[Record, ...]) -> list[tuple[int, list[Step]]]:
    """The steps of all ranks, by their number."""
    found: dict[int, list[Step]] = {}
    for record in records:
        for step in record.steps:
            found.setdefault(step.number, []).append(step)
    return sorted(found.items())


def _transfers(steps: list[tuple[int, list[Step]]]) -> Chart | None:
    def sizes(read: Callable[[Step], tuple[int, int]]) -> list[float]:
        return [float(sum(read(step)[1] for step in row)) for _number, row in steps]

    ways = (("h2d", lambda step: step.h2d), ("d2h", lambda step: step.d2h), ("d2d", lambda step: step.d2d))
    stacks = [(_(DIRECTIONS[name]), sizes(read)) for name, read in ways]
    stacks = [stack for stack in stacks if any(stack[1])]

    def hint(first: int, last: int, values: Sequence[float]) -> str:
        said = (f"{name} {binary_size(value)}" for (name, _all), value in zip(stacks, values, strict=True))
        return _("{steps}: {values}").format(steps=_step_name(steps, first, last), values=_(", ").join(said))

    return bars(stacks, ends=_numbers(steps), hint=hint, words=in_bytes)


def _waits(steps: list[tuple[int, list[Step]]]) -> Chart | None:
    counts = [float(sum(step.syncs for step in row)) for _number, row in steps]

    def hint(first: int, last: int, values: Sequence[float]) -> str:
        return _("{steps}: {values}").format(steps=_step_name(steps, first, last), values=f"{values[0]:.3g}")

    return bars([(_("waits"), counts)], ends=_numbers(steps), hint=hint, words=whole)


def _numbers(steps: list[tuple[int, list[Step]]]) -> tuple[str, ...]:
    return _step_ends(steps[0][0], steps[-1][0]) if steps else ()


def _step_ends(first: int, last: int) -> tuple[str, ...]:
    name = _("step {number}").format(number=first)
    return (name,) if first == last else (name, str(last))


def _step_name(steps: list[tuple[int, list[Step]]], first: int, last: int) -> str:
    if first == last:
        return _("step {number}").format(number=steps[first][0])
    return _("steps {first} to {last}").format(first=steps[first][0], last=steps[last][0])

"""A rehearsal for the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from torchport.finding import Evidence, Finding, Severity
from torchport.plan import Run
from torchport.record import Site
from torchport.report.printable import printable
from torchport.report.rehearsal_summary import (
    DIRECTIONS,
    HOLDERS,
    LossTrace,
    Summary,
    card,
    ending,
    headline,
    limits,
    summarise,
    wait_name,
)
from torchport.report.terminal import COLOURS, QUIET, Part, line, paragraph, said, set_in_lines, severity_name
from torchport.text import _, binary_size, ngettext

_ROWS = 4  # places and holders a table shows; the page and the record have all


def render(run: Run, *, width: int = 100, color: bool = False, page: str | None = None) -> str:
    """The summary in lines of ``width`` cells, where words allow it; ``page`` is the HTML file written."""
    return set_in_lines(_parts(run, summarise(run), page), width=width, color=color)


def _parts(run: Run, summary: Summary, page: str | None) -> Iterator[Part]:
    worst = max((finding.severity for finding in run.findings), default=Severity.INFO)
    how, bad = ending(run)
    colour = "bold red" if bad else COLOURS[worst] if worst > Severity.INFO else "bold green"
    yield paragraph(headline(run, summary.steps), colour)
    if how:
        yield paragraph(how, "red" if bad else QUIET)
    for finding in run.findings:
        if finding.severity > Severity.INFO:
            yield Text()
            yield from _finding(finding)
    yield Text()
    yield _numbers(run, summary)
    notes = [finding for finding in run.findings if finding.severity is Severity.INFO]
    if notes:
        yield Text()
        yield Text(_("notes"), "bold")
        yield _notes(notes)
    yield Text()
    yield paragraph(limits(), QUIET)
    yield from _files({_("record"): run.folder, _("page"): page}, run.plan.folder)


def _files(paths: Mapping[str, str | None], folder: str) -> Iterator[Text]:
    widest = max(map(cell_len, paths))
    for label, path in paths.items():
        if path:
            yield line((label + " " * (widest + 2 - cell_len(label)), QUIET), (_near(path, folder), ""))


def _finding(finding: Finding) -> Iterator[Part]:
    yield line(
        (finding.id, COLOURS[finding.severity]),
        (f" {severity_name(finding.severity)}  ", COLOURS[finding.severity]),
        (str(finding.location or ""), "bold"),
        (_times(finding), QUIET),
    )
    for evidence in finding.evidence:
        if evidence.quote and not evidence.text:
            yield paragraph(evidence.quote, QUIET, indent=4)
    yield said(finding.message)
    for evidence in finding.evidence:
        if evidence.text and not _told(evidence, finding.message):
            yield _evidence(evidence)
    if finding.remedy:
        yield said(finding.remedy, (_("Fix: "), "green"))


def _notes(notes: list[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style=COLOURS[Severity.INFO], no_wrap=True)
    table.add_column()
    for finding in notes:
        table.add_row(f"  {finding.id}", Group(*_note(finding)))
    return table


def _note(finding: Finding) -> Iterator[Text]:
    yield line((f"{finding.location}  " if finding.location else "", "bold"), (finding.message, ""))
    places = [evidence for evidence in finding.evidence if evidence.location]
    for evidence in places[:_ROWS]:
        yield Text(printable(f"{evidence.location}  {evidence.text}"), QUIET)
    if len(places) > _ROWS:
        yield Text(_("and {count} more").format(count=len(places) - _ROWS), QUIET)


def _evidence(evidence: Evidence) -> Padding:
    if evidence.quote:
        # The first line tells; what follows in CUDA's messages is advice on debugging.
        quote = evidence.quote.strip().split("\n")[0]
        return said(quote, (_("{text}: ").format(text=evidence.text), "cyan"))
    place = f"{evidence.location}  " if evidence.location else ""
    return said(evidence.text, (place, "bold"))


def _told(evidence: Evidence, message: str) -> bool:
    """Whether the sentence already names this place."""
    return evidence.location is not None and str(evidence.location) in message


def _numbers(run: Run, summary: Summary) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, (lines, rows) in (
        (_("steps"), _steps(summary)),
        (_("memory"), _memory(run, summary)),
        (_("transfers"), _transfers(summary)),
        (_("waits"), _syncs(summary)),
    ):
        if lines:
            table.add_row(label, Group(*(Text(printable(line)) for line in lines), _rows(rows)))
    return table


_Rows = list[tuple[str, str, str, str]]


def _rows(rows: _Rows) -> Table:
    """An amount, two words on what it is of, and how many."""
    table = Table.grid(padding=(0, 2))
    for justify, style in (("right", ""), ("left", ""), ("left", ""), ("right", QUIET)):
        table.add_column(justify=justify, style=style, overflow="fold")  # type: ignore[arg-type]
    for row in rows[:_ROWS]:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def _steps(summary: Summary) -> tuple[list[str], _Rows]:
    if summary.step_seconds is None:
        return [_("none: no optimizer step was seen")], []
    words = [str(summary.steps), _("{seconds} s each").format(seconds=f"{summary.step_seconds:.3g}")]
    if summary.loader_seconds and summary.loader_seconds > 0.001:
        words.append(_("{seconds} s of it waiting for data").format(seconds=f"{summary.loader_seconds:.3g}"))
    traces = [trace for trace in summary.losses if trace.rank == summary.losses[0].rank]
    return [_(", ").join(words), *(_loss(trace, several=len(traces) > 1) for trace in traces[:_ROWS])], []


def _loss(trace: LossTrace, *, several: bool) -> str:
    first, last = (f"{trace.points[end][1]:.5g}" for end in (0, -1))
    return _("loss {first} → {last}").format(first=first, last=last) + (f"  {_place(trace.site)}" if several else "")


def _memory(run: Run, summary: Summary) -> tuple[list[str], _Rows]:
    if not summary.peaks:
        return [], []
    spec = card(run.plan)
    of = (
        _("peak {size} of {capacity} on cuda:{gpu}, in step {step}")
        if spec
        else _("peak {size} on cuda:{gpu}, in step {step}")
    )
    lines = []
    for rank, peak in summary.peaks:
        size, capacity = binary_size(peak.bytes), binary_size(spec.memory_bytes) if spec else ""
        text = of.format(size=size, capacity=capacity, gpu=peak.gpu, step=peak.step)
        lines.append(_("rank {rank}: {ending}").format(rank=rank, ending=text) if len(run.records) > 1 else text)
    largest = max(summary.peaks, key=lambda row: row[1].bytes)[1]
    return lines, [
        (
            binary_size(holder.bytes),
            _(HOLDERS.get(holder.what, holder.what)),
            holder.module or str(holder.site or ""),
            ngettext("{count} tensor", "{count} tensors", holder.tensors).format(count=holder.tensors),
        )
        for holder in largest.holders
    ]


def _transfers(summary: Summary) -> tuple[list[str], _Rows]:
    words = []
    for direction, name in DIRECTIONS.items():
        way = [moved for moved in summary.transfers if moved.direction == direction]
        if way:
            count, pinned = (
                sum(moved.count for moved in way),
                sum(moved.count for moved in way if moved.pinned),
            )
            size = binary_size(sum(moved.bytes for moved in way))
            said = _("{way} {size} ({count} ×)")
            if direction == "h2d":
                said = _("{way} {size} ({count} ×, {pinned} pinned)")
            words.append(said.format(way=_(name), size=size, count=count, pinned=pinned))
    return [_(", ").join(words)] if words else [], [
        (
            binary_size(moved.bytes),
            _(DIRECTIONS.get(moved.direction, moved.direction)),
            _place(moved.site),
            f"{moved.count} ×",
        )
        for moved in summary.transfers
    ]


def _syncs(summary: Summary) -> tuple[list[str], _Rows]:
    total = sum(count for _site, _op, count in summary.syncs)
    if not total:
        return [], []
    text = ngettext("the host waits {count} time", "the host waits {count} times", total).format(count=total)
    if summary.rank_steps:
        text += _(", {rate} a step").format(rate=f"{total / summary.rank_steps:.3g}")
    return [text], [(f"{count} ×", wait_name(op), _place(site), "") for site, op, count in summary.syncs]


def _place(site: Site | None) -> str:
    return str(site) if site else _("(outside the project)")


def _times(finding: Finding) -> str:
    text = f"  ×{finding.count}" if finding.count > 1 else ""
    if finding.ranks:
        ranks = ", ".join(map(str, finding.ranks))
        text += "  " + ngettext("rank {ranks}", "ranks {ranks}", len(finding.ranks)).format(ranks=ranks)
    return text


def _near(path: str, folder: str) -> str:
    """The path as seen from the working directory, where it lies below it."""
    inside = os.path.isabs(path) and path.startswith(folder.rstrip(os.sep) + os.sep)
    return os.path.relpath(path, folder) if inside else path

"""A rehearsal as one HTML page that needs nothing but itself: no network, no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from torchport.finding import Severity
from torchport.plan import Run
from torchport.report.page import card_of, environment, policy, style
from torchport.report.rehearsal_graphs import graphs
from torchport.report.rehearsal_summary import (
    DIRECTIONS,
    HOLDERS,
    Summary,
    card,
    ending,
    gpu_name,
    limits,
    program,
    summarise,
    wait_name,
)
from torchport.report.source import Read, Sources
from torchport.text import _, binary_size, ngettext

MOST_CARDS = 200
MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the first column is a number."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0


def render(run: Run, *, read: Read, language: str = "en") -> str:
    """The page. ``read`` gives the text of a source file by its path in the project, or None."""
    summary = summarise(run)
    sources = Sources(read)
    cards = [card_of(finding, sources) for finding in run.findings if finding.severity > Severity.INFO]
    words, bad = ending(run)
    look = style()
    return (
        environment()
        .get_template("rehearsal.html")
        .render(
            language={"zh": "zh-CN"}.get(language, language),
            style=look,
            policy=policy(look),
            program=program(run.plan),
            place=_place(run),
            verdicts=_verdicts(run),
            ending=words,
            bad=bad,
            tiles=_tiles(run, summary),
            cards=cards[:MOST_CARDS],
            left_out=max(len(cards) - MOST_CARDS, 0),
            # A remark needs no source beside it.
            notes=[card_of(finding, None) for finding in run.findings if finding.severity is Severity.INFO],
            graphs=graphs(run, summary),
            tables=[table for table in _tables(summary) if table.rows],
            facts=_facts(run),
            limits=limits(),
        )
    )


def _verdicts(run: Run) -> list[tuple[str, str]]:
    """Colour and words of each verdict, the worst first."""
    counts = {severity: sum(f.severity is severity for f in run.findings) for severity in Severity}
    errors, warnings, notes = (counts[s] for s in (Severity.ERROR, Severity.WARNING, Severity.INFO))
    found = [
        ("error", ngettext("{count} fault", "{count} faults", errors).format(count=errors))
        if errors
        else ("clean", _("no faults"))
    ]
    if warnings:
        found.append(("warning", ngettext("{count} warning", "{count} warnings", warnings).format(count=warnings)))
    if notes:
        found.append(("info", ngettext("{count} note", "{count} notes", notes).format(count=notes)))
    return found


def _place(run: Run) -> str:
    plan = run.plan
    if plan.virtual is None or plan.virtual.plain:
        return _("ran on the CPU")
    return _("rehearsed on {gpus} × {gpu} (virtual)").format(gpus=plan.nodes * plan.gpus_per_node, gpu=gpu_name(plan))


def _tiles(run: Run, summary: Summary) -> list[tuple[str, str, str]]:
    """Name, figure and small print."""
    tiles = []
    if summary.step_seconds is not None:
        tiles.append(
            (
                _("steps"),
                str(summary.steps),
                _("{seconds} s each").format(seconds=f"{summary.step_seconds:.3g}"),
            )
        )
    if summary.losses:
        points = summary.losses[0].points
        tiles.append((_("loss"), f"{points[-1][1]:.4g}", _("from {first}").format(first=f"{points[0][1]:.4g}")))
    if summary.peaks:
        _rank, peak = max(summary.peaks, key=lambda row: row[1].bytes)
        spec = card(run.plan)
        of = _("of {capacity}, in step {step}") if spec else _("in step {step}")
        note = of.format(capacity=binary_size(spec.memory_bytes) if spec else "", step=peak.step)
        tiles.append((_("peak memory"), binary_size(peak.bytes), note))
    up = [moved for moved in summary.transfers if moved.direction == "h2d"]
    if up:
        count, pinned = sum(moved.count for moved in up), sum(moved.count for moved in up if moved.pinned)
        note = _("{count} copies, {pinned} pinned").format(count=count, pinned=pinned)
        tiles.append((_("to GPU"), binary_size(sum(moved.bytes for moved in up)), note))
    if summary.syncs:
        waits = sum(count for _site, _op, count in summary.syncs)
        rate = _("{rate} a step").format(rate=f"{waits / summary.rank_steps:.3g}") if summary.rank_steps else ""
        tiles.append((_("waits"), str(waits), rate))
    return tiles


def _tables(summary: Summary) -> list[Table]:
    holders = max(summary.peaks, key=lambda row: row[1].bytes)[1].holders if summary.peaks else ()
    return [
        _table(
            _("Memory at the peak"),
            (_("bytes"), _("what"), _("held by"), _("tensors")),
            [
                (
                    binary_size(h.bytes),
                    _(HOLDERS.get(h.what, h.what)),
                    h.module or str(h.site or ""),
                    str(h.tensors),
                )
                for h in holders
            ],
        ),
        _table(
            _("Transfers"),
            (_("bytes"), _("way"), _("place"), _("count")),
            [
                (binary_size(m.bytes), _way(m.direction, m.pinned), str(m.site or ""), str(m.count))
                for m in summary.transfers
            ],
        ),
        _table(
            _("Where the host waits"),
            (_("count"), _("for"), _("place")),
            [(str(count), wait_name(op), str(site or "")) for site, op, count in summary.syncs],
        ),
        _table(_("Operators"), (_("count"), _("operator")), [(str(count), op) for op, count in summary.operators]),
    ]


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(title, heads, tuple(rows[:MOST_ROWS]), max(len(rows) - MOST_ROWS, 0))


def _way(direction: str, pinned: bool) -> str:
    way = _(DIRECTIONS.get(direction, direction))
    return _("{way}, pinned").format(way=way) if pinned else way


def _facts(run: Run) -> list[tuple[str, str]]:
    """What was run, with what, when; one row each."""
    plan, torch, host = run.plan, run.facts.torch, run.facts.host
    rows = [(_("command"), " ".join(plan.argv)), (_("folder"), plan.folder)]
    if torch and torch.version:
        rows.append(("torch", torch.version))
        rows.append(("Python", f"{'.'.join(map(str, torch.python_version))}  {torch.python}"))
    if host.cpus:
        rows.append(
            (
                _("host"),
                _("{system} {machine}, {cpus} CPUs").format(system=host.system, machine=host.machine, cpus=host.cpus),
            )
        )
    started = run.records[0].header.get("started") if run.records else None
    if isinstance(started, (int, float)):
        rows.append((_("started"), f"{datetime.fromtimestamp(started, timezone.utc):%Y-%m-%d %H:%M UTC}"))
    rows.append((_("took"), _("{seconds} s").format(seconds=f"{run.seconds:.3g}")))
    rows.append((_("record"), run.folder))
    return rows

"""Runs and how they stand, for the terminal and for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from torchport.facts import Card
from torchport.plan import Plan
from torchport.report.printable import printable
from torchport.report.terminal import QUIET, Part, line, set_in_lines
from torchport.text import _, ngettext

SCHEMA = "torchport.runs/1"
SCHEMA_RUN = "torchport.run/1"
_COLOURS = {"running": "green", "waiting": "yellow", "lost": "bold red"}


class Row(Protocol):
    """What is shown of a run: see ``torchport.launch.standing.Standing``."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def phase(self) -> str: ...
    @property
    def started(self) -> float | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def code(self) -> int | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def user(self) -> str | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def living(self) -> tuple[int, ...]: ...


def render(
    runs: Sequence[Row],
    *,
    hidden: Sequence[tuple[str, int, str | None]] = (),
    older: int = 0,
    whose: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """A line a run. ``whose`` also tells its user and its folder; ``hidden`` are (folder, pid, user) of others'."""
    return set_in_lines(_parts(runs, hidden, older, whose, width), width=width, color=color)


def render_json(
    runs: Sequence[Row], *, hidden: Sequence[tuple[str, int, str | None]] = (), cards: Sequence[Card] = ()
) -> str:
    document = {
        "schema": SCHEMA,
        "runs": [plain(run) for run in runs],
        "hidden": [{"folder": folder, "pid": pid, "user": user} for folder, pid, user in hidden],
        "cards": [asdict(card) for card in cards],
    }
    return json.dumps(document, indent=2) + "\n"


def plain(run: Row) -> dict[str, Any]:
    """A run as JSON."""
    names = ("name", "folder", "phase", "code", "reason", "started", "seconds", "pid", "user", "host")
    plan = {"argv": list(run.plan.argv), "processes": run.plan.processes, "cards": list(run.plan.cards)}
    return {**{name: getattr(run, name) for name in names}, "living": list(run.living), "plan": plan}


def _parts(
    runs: Sequence[Row], hidden: Sequence[tuple[str, int, str | None]], older: int, whose: bool, width: int
) -> Iterator[Part]:
    if not runs and not hidden:
        yield line((_("nothing runs") if whose else _("no run yet"), ""))
        return
    if older:
        yield line((ngettext("{count} older run", "{count} older runs", older).format(count=older), QUIET))
    if runs:
        yield _table(runs, whose, width)
    for run in runs:
        if whose:
            yield line((f"{run.name}  {run.folder}", QUIET))
        if run.phase == "lost" and run.living:
            pids = ", ".join(map(str, run.living))
            yield line((_("{name}: its processes go on: {pids}. torchport stop ends them").format(
                name=run.name, pids=pids), "red"))  # fmt: skip
    for folder, pid, user in hidden:
        yield line((_("pid {pid}, {user}: {folder}").format(pid=pid, user=user or "?", folder=folder), ""))


def _table(runs: Sequence[Row], whose: bool, width: int) -> Table:
    """The program takes what is left of the width, and is cut there."""
    heads = [_("run"), *([_("user")] if whose else []), _("state"), _("time"), _("ranks"), _("cards")]
    rows = [_cells(run, whose) for run in runs]
    used = sum(max(cell_len(head), *(row[place].cell_len for row in rows)) + 2 for place, head in enumerate(heads))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=True, justify="right" if head in (_("time"), _("ranks")) else "left")
    table.add_column(_("program"), no_wrap=True)
    for run, row in zip(runs, rows, strict=True):
        program = Text(printable(" ".join(run.plan.argv)) + (" " + _("(rehearsal)") if run.plan.virtual else ""))
        program.truncate(max(width - used, cell_len(_("program"))), overflow="ellipsis")
        table.add_row(*row, program)
    return table


def _cells(run: Row, whose: bool) -> list[Text]:
    return [
        Text(printable(run.name)),
        *([Text(printable(run.user or "?"))] if whose else []),
        _state(run),
        Text(_duration(run.seconds)),
        Text(str(run.plan.processes)),
        Text(",".join(map(str, run.plan.cards)) or "-"),
    ]


def _state(run: Row) -> Text:
    if run.phase != "ended":
        name = {
            "running": _("running"),
            "waiting": _("waiting"),
            "lost": _("lost"),
            "elsewhere": _("on {host}").format(host=run.host),
        }.get(run.phase, _("unknown"))
        return Text(printable(name), _COLOURS.get(run.phase, ""))
    name = {
        "finished": _("finished"),
        "ended": _("finished"),
        "hung": _("hung"),
        "timeout": _("timed out"),
        "stopped": _("stopped"),
        "terminated": _("terminated"),
        "interrupted": _("interrupted"),
        "hangup": _("terminal closed"),
        "not started": _("not started"),
    }.get(run.reason or "", _("failed"))
    code = f" ({run.code})" if run.code else ""
    bad = run.code and run.reason not in ("finished", "ended", "stopped", "interrupted")
    return Text(name + code, "red" if bad else QUIET)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 86400:
        return time.strftime("%H:%M:%S", time.gmtime(seconds))
    return f"{seconds / 86400:.1f} d"

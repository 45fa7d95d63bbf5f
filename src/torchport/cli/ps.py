"""``torchport ps``: the runs of a project, or all that runs on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchport.cli.printing import format_option, layout
from torchport.cli.words import Command, Option, language_option
from torchport.text import mark

_SHOWN = 10


@click.command(
    "ps",
    cls=Command,
    short_help=mark("List the runs: which live, and how the others ended."),
    help=mark(
        "List the runs of this project, the last ten of those that have ended. With --all: what runs on this machine, "
        "whoever started it, and who computes on its cards, as far as the system shows it."
    ),
)
@click.option("--all", "whole", is_flag=True, cls=Option, help=mark("All projects and users of this machine."))
@format_option(mark("How to print the list."))
@language_option()
def ps(whole: bool, form: str) -> int:
    """Returns 0."""
    from torchport.api.runs import machine_runs, project_runs
    from torchport.report import cards_text, runs_text

    if not whole:
        runs = project_runs(Path.cwd())
        if form == "json":
            print(runs_text.render_json(runs), end="")
            return 0
        ended = [run for run in runs if not run.alive]
        left_out = {run.folder for run in ended[:-_SHOWN]}
        shown = [run for run in runs if run.folder not in left_out]
        print(runs_text.render(shown, older=len(left_out), **layout(sys.stdout)), end="")
        return 0
    machine = machine_runs()
    hidden = [(one.folder, one.pid, one.user) for one in machine.hidden]
    if form == "json":
        print(runs_text.render_json(machine.runs, hidden=hidden, cards=machine.cards or ()), end="")
        return 0
    print(runs_text.render(machine.runs, hidden=hidden, whose=True, **layout(sys.stdout)), end="")
    if machine.cards:
        print()
        print(cards_text.render(machine.cards, **layout(sys.stdout)), end="")
    return 0

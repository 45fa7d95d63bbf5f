"""``torchport run``: start a program on this machine, in the foreground or detached."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchport.cli.following import Shown, show_failure
from torchport.cli.printing import format_option, refuse
from torchport.cli.running import python_option
from torchport.cli.words import Option, RunsAProgram, language_option
from torchport.text import _, mark, ngettext

if TYPE_CHECKING:
    from torchport.api.run import NotReady, Prepared
    from torchport.plan import Plan

# For a machine that is not ready, or whose cards are busy: findings, in the words of the other commands.
_NOT_READY = 1


class Runs(RunsAProgram):
    """Keeps in mind whether the words stood behind ``--``: a command that is run as it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        count = len(ctx.params["words"])
        ctx.params["whole_command"] = len(args) > count and args[len(args) - count - 1] == "--"
        return rest


@click.command(
    "run",
    cls=Runs,
    options_metavar="[OPTIONS] SCRIPT|-m MODULE|-- COMMAND [ARGS]...",
    short_help=mark("Run a program on this machine, detached if you like."),
    help=mark(
        "Run a program in the project's own environment, with a record of the run. One process is plain Python; "
        "several are started by torchrun. What stands after -- is run as it is, such as: -- jupyter lab"
    ),
)
@click.option(
    "--on",
    type=click.Choice(["local"]),
    default="local",
    cls=Option,
    help=mark("Where to run it."),
)
@click.option(
    "--gpus",
    type=click.IntRange(1),
    metavar="N",
    cls=Option,
    help=mark("Take N cards that nobody uses, and start as many ranks. [default: leave the cards alone]"),
)
@click.option("--nodes", type=click.IntRange(1), default=1, metavar="N", cls=Option, help=mark("How many machines."))
@click.option(
    "--processes",
    type=click.IntRange(1),
    metavar="N",
    cls=Option,
    help=mark("How many ranks to start. [default: one a card]"),
)
@click.option("--wait", is_flag=True, cls=Option, help=mark("Wait until so many cards are free."))
@click.option("--share", is_flag=True, cls=Option, help=mark("Take cards that others compute on, too."))
@click.option(
    "--max-restarts",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    cls=Option,
    help=mark("Start all ranks again after one has failed, at most N times."),
)
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(0),
    default=30.0,
    metavar="SECONDS",
    cls=Option,
    help=mark("How long the program may take to end once it was asked to. [default: 30]"),
)
@click.option("--name", metavar="NAME", cls=Option, help=mark("What to call the run. [default: the script's name]"))
@click.option("--detach", is_flag=True, cls=Option, help=mark("Go on without this terminal; see ps, attach and stop."))
@click.option("--dry-run", is_flag=True, cls=Option, help=mark("Show what would be run, and start nothing."))
@click.option(
    "--no-preflight", "preflight", is_flag=True, flag_value=False, default=True, cls=Option,
    help=mark("Start without a look at torch, disk, data, ports and shared memory."),
)  # fmt: skip
@python_option()
@format_option(mark("How to print the plan of --dry-run, and the run that --detach starts."))
@language_option()
def run(detach: bool, dry_run: bool, form: str, **asked: Any) -> int:
    """Returns the script's exit code, or that of a refusal."""
    # Here and not above: the help has to come at once.
    from torchport.api.run import Conflict, NotReady, Request, prepare
    from torchport.config import ConfigError
    from torchport.launch.cards import CardsBusy, CardsMissing, CardsUnknown
    from torchport.launch.interpreter import InterpreterError
    from torchport.launch.program import ProgramError
    from torchport.process import ProgramMissing

    if form == "json" and not (detach or dry_run):
        return refuse(_("--format json needs --dry-run or --detach: the output is the program's"), 2)
    now = time.time()
    try:
        prepared = prepare(Request(**asked), folder=Path.cwd(), environ=os.environ, now=now)
        _warn(prepared)
        if dry_run:
            return _show_plan(prepared, form)
        return _start(prepared, now, detach, form)
    except (ProgramError, ConfigError, Conflict) as error:
        return refuse(str(error), 2)
    except (InterpreterError, ProgramMissing) as error:
        return refuse(str(error), 3)
    except (CardsUnknown, CardsMissing) as error:
        return refuse(str(error), _NOT_READY)
    except CardsBusy as error:
        from torchport.report.cards_text import busy

        return refuse(busy(error.wanted, error.cards, error.held), _NOT_READY)
    except NotReady as error:
        return _refuse_all(error)


def _warn(prepared: Prepared) -> None:
    for problem in prepared.problems:
        refuse(_("note: {text}. {remedy}").format(text=problem.text, remedy=problem.remedy), 0)
    if prepared.busy is not None:
        refuse(_("waiting for {count} free cards").format(count=prepared.busy.wanted), 0)


def _refuse_all(error: NotReady) -> int:
    stopping = [problem for problem in error.problems if problem.stops]
    for problem in stopping:
        refuse(f"{problem.text}\n    {problem.remedy}", _NOT_READY)
    line = ngettext(
        "not started: {count} problem. --no-preflight starts it all the same",
        "not started: {count} problems. --no-preflight starts it all the same",
        len(stopping),
    )
    return refuse(line.format(count=len(stopping)), _NOT_READY)


def _show_plan(prepared: Prepared, form: str) -> int:
    from torchport.report import plan_text

    inherited = {name: value for name, value in os.environ.items() if name.startswith("PET_")}
    render = plan_text.render_json if form == "json" else plan_text.render
    print(render(prepared.plan, prepared.argv, {**inherited, **dict(prepared.env)}, prepared.folder), end="")
    return 0


def _start(prepared: Prepared, now: float, detach: bool, form: str) -> int:
    from torchport.api.run import run

    shown: list[Shown] = []
    places: list[str] = []

    def begins(plan: Plan, folder: str) -> None:
        places.append(folder)
        if not detach:
            _announce(plan, folder)
            if plan.launcher:
                shown.append(Shown(folder, plan.processes))

    try:
        code = run(prepared, environ=os.environ, now=now, detach=detach, begins=begins)
    finally:
        for one in shown:
            one.end()
    (folder,) = places
    if code is None:
        _say_detached(folder, form)
        return 0
    if code and shown:
        show_failure(folder)
    return code


def _announce(plan: Plan, folder: str) -> None:
    where = os.path.relpath(folder) if Path(folder).is_relative_to(Path.cwd()) else folder
    parts = [_("run {folder}").format(folder=where)]
    if plan.processes > 1:
        parts.append(ngettext("{count} process", "{count} processes", plan.processes).format(count=plan.processes))
    if plan.cards:
        parts.append(_("cards {cards}").format(cards=", ".join(map(str, plan.cards))))
    print("torchport: " + ", ".join(parts), file=sys.stderr, flush=True)


def _say_detached(folder: str, form: str) -> None:
    from torchport.api.runs import find
    from torchport.report import runs_text

    run = find(folder, Path.cwd())
    if form == "json":
        print(json.dumps({"schema": runs_text.SCHEMA_RUN, "run": runs_text.plain(run)}, indent=2))
        return
    name = shlex.quote(run.name)
    print(_("{name} runs without this terminal").format(name=run.name))
    print(f"    torchport attach {name}    " + _("follow it; Ctrl-C leaves it"))
    print(f"    torchport stop {name}      " + _("end it"))

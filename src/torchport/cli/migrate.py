"""``torchport migrate``: a patch that makes a project run on a GPU, with the proof that it computes what it did."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from torchport.cli.words import Command, Option, language_option
from torchport.text import _, mark

_STEPS = {
    "plain": mark("plain run on the CPU, for the losses"),
    "heal": mark("rehearsal on a virtual GPU"),
    "repair": mark("rehearsal after repairs"),
    "strict": mark("strict rehearsal"),
    "again": mark("plain run of the result"),
}


@click.command(
    "migrate",
    cls=Command,
    options_metavar='[PATH] --entry "SCRIPT ARGS"',
    short_help=mark("Make a project run on a GPU, and prove that it computes the same."),
    help=mark(
        "Read the project, run it, rehearse it, and repair each fault where the tensor is made, until a strict "
        "rehearsal is clean. Writes torchport.patch and changes nothing else, unless --apply is given."
    ),
)
@click.argument("path", default=".")
@click.option("--entry", metavar='"SCRIPT ARGS"', cls=Option, help=mark("The program to run, with its arguments."))
@click.option("--apply", is_flag=True, cls=Option, help=mark("Change the files; the tree has to be clean in git."))
@click.option("--gpu", metavar="NAME", cls=Option, help=mark("The card to rehearse on, such as a100-80gb or rtx-4090."))
@click.option("--steps", type=click.IntRange(1), metavar="K", cls=Option, help=mark("End after K optimizer steps."))
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    cls=Option,
    help=mark("Stop each run after that time."),
)
@click.option(
    "--python",
    metavar="EXE",
    cls=Option,
    help=mark("The project's Python. [default: the active or the project's own environment]"),
)
@language_option()
def migrate(**asked: Any) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api.migrate import NotClean, Request, migrate
    from torchport.config import ConfigError
    from torchport.hardware.gpus import UnknownGpu
    from torchport.launch.interpreter import InterpreterError
    from torchport.launch.program import ProgramError
    from torchport.process import ProgramMissing
    from torchport.report import migration_text

    asked["entry"] = asked["entry"] or ""
    try:
        migrated = migrate(Request(**asked), folder=Path.cwd(), environ=os.environ, tell=_tell)
    except (ProgramError, ConfigError, NotClean, ValueError) as error:
        print(f"torchport: {error}", file=sys.stderr)
        return 2
    except UnknownGpu as error:
        nearest = ", ".join(error.nearest)
        print(
            "torchport: "
            + _("no GPU is named {name}; the nearest are {nearest}").format(name=error.name, nearest=nearest),
            file=sys.stderr,
        )
        return 2
    except (InterpreterError, ProgramMissing) as error:
        print(f"torchport: {error}", file=sys.stderr)
        return 3
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    print(migration_text.render(migrated, width=width, color=color), end="")
    return migrated.exit_code


def _tell(step: str) -> None:
    print(f"torchport: {_(_STEPS[step])}", file=sys.stderr, flush=True)

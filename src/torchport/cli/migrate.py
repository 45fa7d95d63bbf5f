"""``torchport migrate``: a patch that makes a project run on a GPU, with the proof that it computes what it did."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from torchport.cli.running import gpu_option, python_option, refuse, refuse_gpu, steps_option, timeout_option
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
    options_metavar='[PATH] --entry "SCRIPT ARGS" [--recipe NAME…]',
    short_help=mark("Make a project run on a GPU, and prove that it computes the same."),
    help=mark(
        "Read the project, run it, rehearse it, and repair each fault where the tensor is made, until a strict "
        "rehearsal is clean. Writes torchport.patch and changes nothing else, unless --apply is given."
    ),
)
@click.argument("path", default=".")
@click.option("--entry", metavar='"SCRIPT ARGS"', cls=Option, help=mark("The program to run, with its arguments."))
@click.option("--apply", is_flag=True, cls=Option, help=mark("Change the files; the tree has to be clean in git."))
@click.option(
    "--recipe",
    "recipes",
    multiple=True,
    metavar="NAME",
    cls=Option,
    help=mark("Add amp, loader, ddp, paths, tensorboard, checkpoint, compile or backends, proven; repeatable."),
)
@gpu_option()
@steps_option()
@timeout_option(mark("Stop each run after that time."))
@python_option()
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
        return refuse(str(error), 2)
    except UnknownGpu as error:
        return refuse_gpu(error)
    except (InterpreterError, ProgramMissing) as error:
        return refuse(str(error), 3)
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    print(migration_text.render(migrated, width=width, color=color), end="")
    return migrated.exit_code


def _tell(step: str) -> None:
    what = _(_STEPS[step]) if step in _STEPS else _("recipe {name}").format(name=step)
    print(f"torchport: {what}", file=sys.stderr, flush=True)

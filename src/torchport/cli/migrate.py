"""``torchport migrate``: a patch that makes a project run on a GPU, with the proof that it computes what it did."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from torchport.cli.printing import format_option, layout, refuse
from torchport.cli.running import gpu_option, gpus_option, python_option, refuse_gpu, steps_option, timeout_option
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
    help=mark(
        "Add amp, amp-fp16, loader, ddp, paths, tensorboard, checkpoint, compile or backends, proven; repeatable."
    ),
)
@gpu_option()
@gpus_option()
@steps_option()
@timeout_option(mark("Stop each run after that time."))
@python_option()
@format_option(mark("How to print the report."))
@language_option()
def migrate(form: str, **asked: Any) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api.migrate import NotClean, Request, TooLong, migrate
    from torchport.config import ConfigError
    from torchport.hardware.gpus import UnknownGpu
    from torchport.launch.interpreter import InterpreterError
    from torchport.launch.program import ProgramError
    from torchport.process import ProgramMissing
    from torchport.report import migration_json, migration_text

    asked["entry"] = asked["entry"] or ""
    try:
        migrated = migrate(Request(**asked), folder=Path.cwd(), environ=os.environ, tell=_tell, warn=_warn)
    except (ProgramError, ConfigError, NotClean, ValueError) as error:
        return refuse(str(error), 2)
    except UnknownGpu as error:
        return refuse_gpu(error)
    except (InterpreterError, ProgramMissing) as error:
        return refuse(str(error), 3)
    except TooLong as error:
        return refuse(str(error), 5)
    except OSError as error:
        return refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    if form == "json":
        print(migration_json.render(migrated), end="")
        return migrated.exit_code
    print(migration_text.render(migrated, **layout(sys.stdout)), end="")
    return migrated.exit_code


def _warn(line: str) -> None:
    refuse(line, 0)


def _tell(step: str) -> None:
    what = _(_STEPS[step]) if step in _STEPS else _("recipe {name}").format(name=step)
    print(f"torchport: {what}", file=sys.stderr, flush=True)

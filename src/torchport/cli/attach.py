"""``torchport attach``: follow a run until it ends; Ctrl-C leaves it running."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchport.cli.following import how_it_ended, show, show_failure
from torchport.cli.printing import refuse
from torchport.cli.words import Command, Option, language_option
from torchport.text import _, mark


@click.command(
    "attach",
    cls=Command,
    short_help=mark("Follow a run until it ends; Ctrl-C leaves it running."),
    help=mark(
        "Follow what a run prints until it ends, and end with its exit code. Ctrl-C leaves it running. RUN is a name "
        "from ps or a path. [default: the latest]"
    ),
)
@click.argument("name", metavar="[RUN]", required=False)
@click.option("-n", "--lines", "last", type=click.IntRange(0), metavar="N", cls=Option,
              help=mark("Begin with the last N lines. [default: with the first]"))  # fmt: skip
@language_option()
def attach(name: str | None, last: int | None) -> int:
    """Returns the run's exit code, 0 when it is left running, and 1 for a run that is lost."""
    from torchport.api.runs import find, lines
    from torchport.launch.run_folder import RunMissing

    try:
        run = find(name, Path.cwd())
        show(lines(run, follow=True, rank=None, last=last), run.plan.processes)
        run = find(run.folder, Path.cwd())
    except RunMissing as error:
        return refuse(str(error), 2)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return refuse(_("{name} goes on; torchport stop ends it").format(name=run.name), 0)
    if run.plan.launcher and run.code:
        show_failure(run.folder)
    refuse(how_it_ended(run), 0)
    return run.code if run.code is not None else 1

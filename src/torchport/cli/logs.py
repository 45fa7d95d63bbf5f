"""``torchport logs``: what the ranks of a run have written."""

from __future__ import annotations

from pathlib import Path

import click

from torchport.cli.following import show
from torchport.cli.printing import refuse
from torchport.cli.words import Command, Option, language_option
from torchport.text import _, mark


@click.command(
    "logs",
    cls=Command,
    short_help=mark("Show what a run has printed."),
    help=mark("Show what the ranks of a run have printed. RUN is a name from ps or a path. [default: the latest]"),
)
@click.argument("name", metavar="[RUN]", required=False)
@click.option("-f", "--follow", is_flag=True, cls=Option, help=mark("Go on with what it prints until it ends."))
@click.option("--rank", type=click.IntRange(0), metavar="K", cls=Option, help=mark("Of that rank alone."))
@click.option("-n", "--lines", "last", type=click.IntRange(0), metavar="N", cls=Option, help=mark("The last N lines."))
@language_option()
def logs(name: str | None, follow: bool, rank: int | None, last: int | None) -> int:
    """Returns 0, or 2 for a run that is not there."""
    from torchport.api.runs import find, lines
    from torchport.launch.run_folder import RunMissing

    try:
        run = find(name, Path.cwd())
        show(lines(run, follow=follow, rank=rank, last=last), run.plan.processes if rank is None else 1)
    except RunMissing as error:
        return refuse(str(error), 2)
    if rank is not None and rank >= run.plan.processes:
        return refuse(_("the run has {count} ranks, from 0").format(count=run.plan.processes), 2)
    return 0

"""``torchport stop``: end a run, and what it has left behind."""

from __future__ import annotations

from pathlib import Path

import click

from torchport.cli.following import how_it_ended
from torchport.cli.printing import refuse
from torchport.cli.words import Command, Option, language_option
from torchport.text import _, mark


@click.command(
    "stop",
    cls=Command,
    short_help=mark("End a run, with time to save what it has."),
    help=mark(
        "End a run: the script gets SIGTERM, all its ranks do, and has the run's --grace to save what it has; then it "
        "is killed. Also ends what a lost run has left behind. RUN is a name from ps or a path. [default: the one "
        "that lives]"
    ),
)
@click.argument("name", metavar="[RUN]", required=False)
@click.option("--now", "at_once", is_flag=True, cls=Option, help=mark("Kill it at once."))
@language_option()
def stop(name: str | None, at_once: bool) -> int:
    """Returns 0 once nothing of the run lives, 1 where that cannot be done here, 2 for a run that is not there."""
    from torchport.api.runs import find, stop
    from torchport.launch.run_folder import RunMissing
    from torchport.launch.stop import NotStopped

    try:
        run = find(name, Path.cwd(), living=True)
        if not run.alive:
            return refuse(how_it_ended(run), 1 if run.phase == "elsewhere" else 0)
        ended = stop(run, at_once=at_once)
    except RunMissing as error:
        return refuse(str(error), 2)
    except NotStopped as error:
        return refuse(_("the run is {user}'s: ask them, or be root").format(user=error), 1)
    return refuse(how_it_ended(ended), 0 if not ended.alive else 1)

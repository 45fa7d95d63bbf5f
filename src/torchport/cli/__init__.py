"""The command line: one file a command, each parses, calls the api, prints and chooses the exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from torchport import __version__
from torchport.cli.attach import attach
from torchport.cli.check import check
from torchport.cli.explain import explain
from torchport.cli.logs import logs
from torchport.cli.migrate import migrate
from torchport.cli.ps import ps
from torchport.cli.rehearse import rehearse
from torchport.cli.run import run
from torchport.cli.stack import stack
from torchport.cli.stop import stop
from torchport.cli.words import Group, language_option
from torchport.text import mark, set_language


@click.group(
    cls=Group,
    help=mark("Make a PyTorch project run correctly on GPUs, before a GPU is rented."),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="torchport")
@language_option()
def torchport() -> None:
    pass


for command in (check, rehearse, migrate, stack, run, ps, logs, attach, stop, explain):
    torchport.add_command(command)


def main(argv: list[str] | None = None) -> NoReturn:
    """Runs torchport with these arguments, by default those of the process, and exits."""
    set_language()
    try:
        code = torchport.main(argv, prog_name="torchport", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)

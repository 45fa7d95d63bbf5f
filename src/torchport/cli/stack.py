"""``torchport stack``: choose what to install for a card and a driver, say why, and lock it with hashes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchport.cli.printing import format_option, layout, refuse
from torchport.cli.running import refuse_gpu
from torchport.cli.words import Command, Option, language_option
from torchport.text import _, mark

if TYPE_CHECKING:
    from torchport.resolved import Compared, Locked


@click.command(
    "stack",
    cls=Command,
    short_help=mark("Choose torch, CUDA and Python for a card and a driver, and lock them."),
    help=mark(
        "Read what the project asks for, choose the torch, CUDA and Python that the card and its driver can run, say "
        "why, and write the whole closure with hashes to torchport.lock. Stacks for several cards, and for the CPU, "
        "stand side by side in it."
    ),
)
@click.argument("path", default=".")
@click.option(
    "--gpu", metavar="NAME", cls=Option, help=mark("The card, such as v100 or rtx-4090, or a capability, 8.9.")
)
@click.option("--driver", metavar="VERSION", cls=Option, help=mark("Its driver, such as 535.104.05 or 535."))
@click.option("--cuda", metavar="VERSION", cls=Option, help=mark("Only builds for this CUDA, 12.6 or cu126; or cpu."))
@click.option("--torch", metavar="VERSION", cls=Option, help=mark('Only this torch: 2.9, 2.9.1 or ">=2.6,<2.10".'))
@click.option("--strict", is_flag=True, cls=Option, help=mark("Want the driver of the CUDA's own minor version."))
@click.option(
    "--check", is_flag=True, cls=Option, help=mark("Change nothing; tell what has drifted from torchport.lock.")
)
@click.option("--offline", metavar="FOLDER", cls=Option, help=mark("Take all packages from this folder of wheels."))
@format_option(mark("How to print the stack; requirements is a file for pip and uv."), "text", "json", "requirements")
@language_option()
def stack(check: bool, form: str, **asked: Any) -> int:
    """Returns the exit code of contract.md."""
    # Here and not above: the help has to come at once.
    from torchport.api import stack as api
    from torchport.config import ConfigError
    from torchport.hardware.gpus import UnknownGpu
    from torchport.mirrors import MirrorError
    from torchport.stack.lockfile import LockError

    request = api.Request(**asked)
    try:
        if check:
            if form == "requirements":
                return refuse(_("--check goes with the formats text and json"), 2)
            return _print_compared(api.check(request, folder=Path.cwd(), environ=os.environ), form)
        return _print(api.stack(request, folder=Path.cwd(), environ=os.environ), form)
    except UnknownGpu as error:
        return refuse_gpu(error)
    except (api.RequestError, ConfigError, MirrorError, LockError) as error:
        return refuse(str(error), 2)


def _print(locked: Locked, form: str) -> int:
    from torchport.report import stack_json, stack_requirements, stack_text

    if form == "json":
        print(stack_json.render(locked), end="")
    elif form == "requirements" and locked.stack is not None:
        print(stack_requirements.render(locked.stack), end="")
        print(stack_text.render(locked, **layout(sys.stderr)), end="", file=sys.stderr)
    else:
        print(stack_text.render(locked, **layout(sys.stdout)), end="")
    return locked.exit_code


def _print_compared(compared: Compared, form: str) -> int:
    from torchport.report import stack_json, stack_text

    if form == "json":
        print(stack_json.render_compared(compared), end="")
    else:
        print(stack_text.render_compared(compared, **layout(sys.stdout)), end="")
    return compared.exit_code

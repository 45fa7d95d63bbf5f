"""The options that commands which run the user's program share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from torchport.cli.printing import refuse
from torchport.cli.words import Option
from torchport.text import _, mark

if TYPE_CHECKING:
    from torchport.hardware.gpus import UnknownGpu

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def gpu_option() -> Decorator:
    return click.option(
        "--gpu", metavar="NAME", cls=Option, help=mark("The card to rehearse on, such as a100-80gb or rtx-4090.")
    )


def gpus_option() -> Decorator:
    return click.option(
        "--gpus", type=click.IntRange(1), metavar="N", cls=Option, help=mark("How many of them. [default: 1]")
    )


def steps_option() -> Decorator:
    return click.option(
        "--steps", type=click.IntRange(1), metavar="K", cls=Option, help=mark("End after K optimizer steps.")
    )


def timeout_option(help: str) -> Decorator:
    """``help`` is marked for translation where it stands."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        cls=Option,
        help=help,
    )


def python_option() -> Decorator:
    return click.option(
        "--python",
        metavar="EXE",
        cls=Option,
        help=mark("The project's Python. [default: the active or the project's own environment]"),
    )


def refuse_gpu(error: UnknownGpu) -> int:
    """A card that the table does not have: the nearest that it has."""
    nearest = ", ".join(error.nearest)
    return refuse(_("no GPU is named {name}; the nearest are {nearest}").format(name=error.name, nearest=nearest), 2)

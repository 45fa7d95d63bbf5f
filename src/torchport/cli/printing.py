"""How commands print: in which form, how wide, in colour or not, and how a refusal is said."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TextIO

import click

from torchport.cli.words import Option


def format_option(help: str, *forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--format``, by default text or json. ``help`` is marked for translation where it stands."""
    return click.option(
        "--format", "form", type=click.Choice(forms or ("text", "json")), default="text", cls=Option, help=help
    )


def layout(stream: TextIO) -> dict[str, Any]:
    """The width of a report on a stream, and whether it is in colour."""
    color = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return {"width": min(shutil.get_terminal_size((100, 24)).columns, 120), "color": color}


def refuse(message: str, code: int) -> int:
    """Says on standard error why nothing is done, and returns the exit code."""
    for line in message.splitlines():
        print(f"torchport: {line}", file=sys.stderr)
    return code

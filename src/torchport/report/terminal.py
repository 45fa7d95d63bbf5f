"""What reports for the terminal are made of: lines, paragraphs, and the width they are set in."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from torchport.finding import Severity
from torchport.report.printable import printable
from torchport.text import _

COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "blue"}
QUIET = "bright_black"

Part = Text | Padding | Table


def set_in_lines(parts: Iterable[Part], *, width: int, color: bool) -> str:
    """The parts in lines of ``width`` cells, where words allow it."""
    console = Console(
        file=io.StringIO(),
        width=max(width, 40),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for part in parts:
            if not isinstance(part, Text):
                console.print(part, crop=False)
            elif color:  # a line stays one line, whatever its length
                console.print(part, crop=False, no_wrap=True, overflow="ignore")
            else:
                console.out(part.plain, highlight=False)
    # Cells are filled up with spaces, which nobody wants to copy.
    return re.sub(r"(?: |\x1b\[[\d;]*m)+$", lambda end: end[0].replace(" ", ""), capture.get(), flags=re.MULTILINE)


def severity_name(severity: Severity) -> str:
    """The severity as users read it."""
    return {"error": _("error"), "warning": _("warning"), "info": _("info")}[severity.value]


def line(*spans: tuple[str, str]) -> Text:
    """One line that is never broken, so that a terminal still sees ``path:line`` in it."""
    return Text.assemble(*((printable(text), style) for text, style in spans))


def paragraph(text: str, style: str, indent: int = 0) -> Padding:
    return Padding(Text(printable(text), style), (0, 0, 0, indent), expand=False)


def said(text: str, *before: tuple[str, str], indent: int = 4) -> Padding:
    """A sentence, perhaps behind a coloured word."""
    return Padding(line(*before, (text, "")), (0, 0, 0, indent), expand=False)

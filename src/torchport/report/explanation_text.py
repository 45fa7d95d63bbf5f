"""What an id means, for the terminal and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.padding import Padding
from rich.text import Text

from torchport.report.printable import printable
from torchport.report.terminal import COLOURS, QUIET, Part, line, said, set_in_lines, severity_name
from torchport.survey import Explanation

SCHEMA = "torchport.explanation/1"


def render(explanation: Explanation, *, width: int = 100, color: bool = False) -> str:
    return set_in_lines(_parts(explanation), width=width, color=color)


def render_json(explanation: Explanation) -> str:
    """One JSON object in ASCII; an explanation for it is made in English."""
    document = {
        "schema": SCHEMA,
        "id": explanation.id,
        "name": explanation.name,
        "severity": explanation.severity.value,
        "title": explanation.title,
        "parts": [{"heading": heading, "text": text} for heading, text in explanation.parts],
        "examples": [{"heading": heading, "code": code} for heading, code in explanation.examples],
    }
    return json.dumps(document, indent=2) + "\n"


def _parts(explanation: Explanation) -> Iterator[Part]:
    colour = COLOURS[explanation.severity]
    yield line((f"{explanation.id} {severity_name(explanation.severity)}  ", colour), (explanation.name, "bold"))
    yield said(explanation.title)
    for heading, text in explanation.parts:
        yield Text()
        yield said(text, *([(f"{heading}: ", "green")] if heading else []))
    for heading, code in explanation.examples:
        yield Text()
        yield said("", (heading, "bold"))
        yield Padding(Text(printable(code.rstrip("\n"), keep="\n\t"), QUIET), (0, 0, 0, 8), expand=False)

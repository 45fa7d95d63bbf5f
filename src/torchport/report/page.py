"""What pages are made of: one template engine, one style, findings with their source, and nothing loaded or run."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from torchport.finding import Evidence, Finding, Location
from torchport.report.printable import printable
from torchport.report.source import Excerpt, Note, Sources
from torchport.report.terminal import severity_name
from torchport.text import _, binary_size


@dataclass(frozen=True, slots=True)
class Card:
    """A finding, with what is told beside its source and what is told under its lines."""

    finding: Finding
    told: tuple[Evidence, ...]
    excerpts: tuple[Excerpt, ...]
    name: str = ""


@cache
def environment() -> Environment:
    """The engine that sets our templates: it escapes everything, and knows what we know."""
    made = Environment(
        loader=PackageLoader("torchport.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters["coded"] = _coded
    made.globals.update(_=_, severity_name=severity_name, binary_size=binary_size)
    return made


def _shown(value: Any) -> Any:
    """Everything that reaches the page, but what we wrote as HTML ourselves."""
    return value if isinstance(value, Markup) else printable(str(value), keep="\n\t")


def _coded(text: str) -> Markup:
    """Text with what stands between backticks set as code; an odd backtick is a backtick."""
    parts = str(escape(printable(text, keep="\n"))).split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts)))


def style() -> Markup:
    """The style of all pages."""
    loader = environment().loader
    assert loader is not None
    return Markup(loader.get_source(environment(), "rehearsal.css")[0])


def policy(style: str) -> str:
    """Content-Security-Policy: nothing is loaded, nothing runs, and no style but ours counts."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def card_of(finding: Finding, sources: Sources | None, name: str = "") -> Card:
    """Evidence whose line can be shown is written under it; the rest, and all without sources, stands beside."""
    notes: list[Note] = []
    if finding.location:
        notes.append(_note(finding.location, "", main=True))
    for evidence in finding.evidence:
        if evidence.location:
            notes.append(_note(evidence.location, evidence.text, main=not evidence.text))
    excerpts = sources.excerpts(tuple(notes)) if sources else ()
    shown = {(note.path, note.line) for excerpt in excerpts for line in excerpt.lines for note in line.notes}
    places = [(evidence, evidence.location) for evidence in finding.evidence]
    told = tuple(evidence for evidence, place in places if not place or (place.path, place.line) not in shown)
    return Card(finding, told, excerpts, name)


def _note(place: Location, text: str, *, main: bool) -> Note:
    return Note(place.path, place.line, place.function, text, main)

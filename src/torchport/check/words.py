"""What a rule's docstring says: what it finds, why that hurts, and its examples."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from torchport.check.rule import LoadedRule

_BLOCK = re.compile(r"^(?P<kind>Bad|Good)::\n\n(?P<code>(?:    .*(?:\n|\Z)|[ \t]*\n)+)", re.MULTILINE)

# Kind of file → the word behind the fence of a code block.
_LANGUAGES = {"python": "python", "dockerfile": "dockerfile", "compose": "yaml", "yaml": "yaml", "shell": "bash"}


@dataclass(frozen=True, slots=True)
class Words:
    """A docstring in parts, in English. ``language`` is that of the examples."""

    title: str
    why: tuple[str, ...]
    bad: tuple[str, ...]
    good: tuple[str, ...]
    language: str


def words(loaded: LoadedRule) -> Words:
    """The docstring of a rule's module; the first paragraph is its title."""
    head = loaded.text.partition("\nBad::")[0]
    title, *why = (" ".join(paragraph.split()) for paragraph in head.strip().split("\n\n"))
    blocks = [(match["kind"], _code(match["code"])) for match in _BLOCK.finditer(loaded.text)]
    return Words(
        title=title.replace("``", "`"),
        why=tuple(paragraph.replace("``", "`") for paragraph in why),
        bad=tuple(code for kind, code in blocks if kind == "Bad"),
        good=tuple(code for kind, code in blocks if kind == "Good"),
        language=next((word for kind, word in _LANGUAGES.items() if kind in loaded.files), "text"),
    )


def _code(block: str) -> str:
    return textwrap.dedent(block).strip("\n") + "\n"

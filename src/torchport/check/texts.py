"""Text: a file that is not Python as rules see it: what a shell would run of it, at the same offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from torchport.check.source import LINE_END

MOST_CHARACTERS = 500_000  # a longer one is data

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>```+|~~~+)[ \t]*(?P<language>[\w.+-]*)[^\n]*$", re.MULTILINE)
_SHELLS = frozenset({"", "bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "text", "dockerfile"})
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*$", re.MULTILINE)
_LINE_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\[ \t]*(?:\r\n|\r|\n)")


class Text:
    """``kind`` is what ``files.kind_of`` says of the name. Offsets count characters of ``text``."""

    def __init__(self, path: str, text: str, kind: str) -> None:
        self.path = path
        self.text = text
        self.kind = kind

    @property
    def written(self) -> str:
        return self.text

    def again(self, written: str) -> Text:
        """The same file with another text."""
        return Text(self.path, written, self.kind)

    @cached_property
    def commands(self) -> str:
        """The text without what nobody runs, character by character a space: comments, the prose of a page.

        A command that goes on in the next line is one line; other line ends stay.
        """
        text = _code_blocks(self.text) if self.kind == "markdown" else self.text
        # A Makefile's and a Dockerfile's values may hold a #.
        comment = _LINE_COMMENT if self.kind in ("makefile", "dockerfile") else _COMMENT
        text = comment.sub(lambda match: " " * len(match[0]), text)
        return text if self.kind in ("requirements", "yaml") else _CONTINUED.sub(lambda m: " " * len(m[0]), text)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1, the column in characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1


def _code_blocks(text: str) -> str:
    """The fenced blocks of a page that hold commands; all else is spaces."""
    kept: list[str] = []
    position, opened = 0, None
    for fence in _FENCE.finditer(text):
        if opened is None:
            kept.append(_blank(text[position : fence.end()]))
            position, opened = fence.end(), fence
        elif not fence["language"] and fence["mark"].startswith(opened["mark"]):
            block = text[position : fence.start()]
            kept.append(block if opened["language"].lower() in _SHELLS else _blank(block))
            position, opened = fence.start(), None
    kept.append(_blank(text[position:]))
    return "".join(kept)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)

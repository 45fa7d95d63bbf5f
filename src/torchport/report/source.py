"""Excerpts of the user's source with what happened written under the lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from torchport.report.printable import printable

AROUND = 3  # lines shown above and below
MOST_CHARACTERS = 240  # of one line

Read = Callable[[str], str | None]

_CLASSES = (
    (Comment, "c"),
    (String, "s"),
    (Number, "m"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
)


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be said about one line. ``main`` is the place of the finding itself."""

    path: str
    line: int
    function: str
    text: str
    main: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an excerpt, highlighted."""

    number: int
    code: Markup
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Neighbouring lines of one file."""

    path: str
    line: int
    function: str
    lines: tuple[Line, ...]


class Sources:
    """Highlighted files, each read once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._files: dict[str, list[Markup]] = {}

    def excerpts(self, notes: tuple[Note, ...]) -> tuple[Excerpt, ...]:
        """The lines around the notes, the main one's first; places close together share an excerpt."""
        found: list[Excerpt] = []
        left = [note for note in notes if self._has(note)]
        while left:
            group, first, last = [left[0]], left[0].line, left[0].line
            for note in sorted(left[1:], key=lambda note: abs(note.line - group[0].line)):
                if note.path == group[0].path and first - 2 * AROUND <= note.line <= last + 2 * AROUND:
                    group.append(note)
                    first, last = min(first, note.line), max(last, note.line)
            found.append(self._excerpt(group))
            left = [note for note in left if note not in group]
        return tuple(found)

    def _has(self, note: Note) -> bool:
        return 1 <= note.line <= len(self._lines(note.path))

    def _excerpt(self, notes: list[Note]) -> Excerpt:
        lines = self._lines(notes[0].path)
        told = [note.line for note in notes]
        first, last = max(min(told) - AROUND, 1), min(max(told) + AROUND, len(lines))
        while first < min(told) and not lines[first - 1].strip():
            first += 1
        while last > max(told) and not lines[last - 1].strip():
            last -= 1
        shown = tuple(
            Line(number, lines[number - 1], tuple(note for note in notes if note.line == number))
            for number in range(first, last + 1)
        )
        return Excerpt(notes[0].path, notes[0].line, notes[0].function, shown)

    def _lines(self, path: str) -> list[Markup]:
        if path not in self._files:
            text = self._read(path)
            self._files[path] = [] if text is None else highlight(text)
        return self._files[path]


def highlight(text: str) -> list[Markup]:
    """The lines of a Python source as HTML; one that does not parse is highlighted as far as it goes."""
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        first, *more = value.split("\n")
        lines[-1].append((_class(kind), first))
        lines.extend([(_class(kind), piece)] for piece in more)
    if not any(piece for _name, piece in lines[-1]):
        lines.pop()
    return [_line(pieces) for pieces in lines]


def _line(pieces: list[tuple[str, str]]) -> Markup:
    """One line from its pieces, neighbours of one class in one element; a very long line is cut."""
    parts, room = [], MOST_CHARACTERS
    for name, group in groupby(pieces, key=itemgetter(0)):
        piece = "".join(text for _name, text in group)
        code = escape(printable(piece[:room], keep="\t"))
        if code:
            parts.append(Markup('<span class="{}">{}</span>').format(name, code) if name else code)
        if len(piece) > room:
            parts.append(Markup("…"))
            break
        room -= len(piece)
    return Markup("").join(parts)


def _class(kind: _TokenType) -> str:
    return next((name for token, name in _CLASSES if kind[: len(token)] == token), "")

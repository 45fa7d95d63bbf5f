"""Finding: one thing that is wrong or worth knowing, where it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import total_ordering


class _Ordered(Enum):
    """An enumeration whose members compare in the order in which they are written."""

    def __lt__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        members = list(type(self))
        return members.index(self) < members.index(other)


@total_ordering
class Severity(_Ordered):
    """What happens to the run: ERROR fails or is wrong, WARNING is slow or not reproducible, INFO neither."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@total_ordering
class Confidence(_Ordered):
    """How sure we are that the finding holds."""

    POSSIBLE = "possible"
    LIKELY = "likely"
    CERTAIN = "certain"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source; lines and columns start at 1. Paths in the project are relative to it.

    ``end_line`` and ``end_column`` say where it ends, the column excluded, where that is known.
    """

    path: str
    line: int
    column: int | None = None
    function: str = ""
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.column is None else f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters ``start`` to ``end`` (offsets into the file's text) of ``path`` by ``text``."""

    path: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair. ``safe`` means that it cannot change what is computed."""

    title: str
    edits: tuple[Edit, ...]
    safe: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation that supports a finding, with its place where it has one.

    ``quote`` holds the exact words of a program, which are never translated.
    """

    text: str
    location: Location | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or remark. ``count`` is how often it showed, ``ranks`` where, if there are several."""

    id: str
    message: str
    severity: Severity
    confidence: Confidence = Confidence.CERTAIN
    location: Location | None = None
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    fix: Fix | None = None
    count: int = 1
    ranks: tuple[int, ...] = ()

"""Survey: what a check of a project found, and what it repaired."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torchport.finding import Confidence, Finding, Severity

Read = Callable[[str], str | None]

_CELL = re.compile(r" cell \[\d+\]$")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be read, checked or written, and why."""

    path: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A rule in words: what it finds and why that hurts, in English."""

    id: str
    name: str
    severity: Severity
    confidence: Confidence
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to know of an id. ``parts`` are a heading and sentences each, ``examples`` a heading and code."""

    id: str
    name: str
    severity: Severity
    title: str
    parts: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """A finding of a baseline: what it is called, where it was, and the line of code, wherever that stands now."""

    id: str
    path: str
    code: str


@dataclass(frozen=True, slots=True)
class Survey:
    """``findings`` are those that count; ``known`` is how many a baseline leaves out, and ``unused`` what it lists
    and nobody found. ``fixed`` are findings repaired, ``taken_back`` those whose repair did not hold. ``diff`` is
    set where the repairs were asked for and not written.
    """

    files: int
    lines: int
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    fixed: tuple[Finding, ...] = ()
    taken_back: tuple[Finding, ...] = ()
    diff: str | None = None
    known: int = 0
    unused: tuple[Known, ...] = ()
    baseline: str = ""
    torch: tuple[int, int] | None = None
    seconds: float = 0.0

    def name(self, finding: Finding) -> str:
        """The name of a finding's rule."""
        return self.kinds[finding.id].name if finding.id in self.kinds else ""


def split_lines(text: str) -> list[str]:
    """The lines of a source as Python counts them, without their ends."""
    return _LINE_END.split(text)


class Lines:
    """Lines of files by path and number, each file split once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._files: dict[str, list[str]] = {}

    def __call__(self, path: str, line: int) -> str | None:
        """A line of a file, None where there is none."""
        if path not in self._files:
            text = self._read(path)
            self._files[path] = [] if text is None else split_lines(text)
        lines = self._files[path]
        return lines[line - 1] if 1 <= line <= len(lines) else None


def known(finding: Finding, lines: Lines) -> Known:
    """What stays the same of a finding while the lines, and in a notebook the cells, around it move."""
    place = finding.location
    code = lines(place.path, place.line) if place else None
    return Known(finding.id, file_of(place.path) if place else "", " ".join((code or "").split()))


def file_of(path: str) -> str:
    """The file of a place: a notebook's places name a cell behind it."""
    return _CELL.sub("", path)


def fingerprints(findings: Sequence[Finding], read: Read) -> list[str]:
    """A short text for each finding, that stays the same while the lines around it move."""
    lines, seen = Lines(read), Counter[Known]()
    found = []
    for finding in findings:
        what = known(finding, lines)
        seen[what] += 1
        text = "\n".join((what.id, what.path, what.code, str(seen[what])))
        found.append(hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16])
    return found


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity of findings, None where there is none."""
    return max((finding.severity for finding in findings), default=None)

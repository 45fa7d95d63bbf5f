"""Reads the files of a project and runs the rules over them."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from torchport.check import changes
from torchport.check.rule import Change, Hit, LoadedRule
from torchport.check.rules import rules
from torchport.check.source import Source, Unreadable
from torchport.finding import Edit, Evidence, Finding, Fix, Location
from torchport.text import _

# Folders that hold what others wrote, or what a program made.
SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "env", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {"__pycache__", "node_modules", "site-packages", "build", "dist", ".torchport", ".ipynb_checkpoints", ".eggs"}
)
MOST_BYTES = 5_000_000

_IGNORE = re.compile(r"#\s*torchport:\s*ignore(?:\[([^\]]*)\])?")
_SKIP = re.compile(r"#\s*torchport:\s*skip-file\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be read, and why."""

    path: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What one file gave."""

    path: str
    lines: int
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None


def python_files(root: Path, exclude: Iterable[str] = ()) -> Iterator[Path]:
    """The Python files and notebooks below a folder, or the one file that is given, in a fixed order."""
    if root.is_file():
        yield root
        return
    excluded = list(exclude)
    for entry in sorted(root.iterdir()):
        if entry.is_symlink() or any(entry.match(pattern) for pattern in excluded):
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED and not (entry / "pyvenv.cfg").exists():
                yield from python_files(entry, excluded)
        elif entry.suffix == ".py":
            yield entry


def decode(data: bytes) -> str:
    """The text of a Python file in the encoding that it names, line ends and all. Raises Unreadable."""
    try:
        encoding, _lines = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Unreadable(str(error)) from None


def module_name(path: str) -> str:
    """The name by which other files of the project import one."""
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def check_file(
    path: str, data: bytes, torch: tuple[int, int] | None = None, chosen: Sequence[LoadedRule] | None = None
) -> Checked:
    """Checks the bytes of one file; one that never says torch is not parsed."""
    lines = data.count(b"\n") + 1
    if b"torch" not in data:
        return Checked(path, lines)
    try:
        source = Source(path, decode(data), module_name(path))
    except Unreadable as error:
        return Checked(path, lines, problem=Problem(path, str(error), error.line))
    return Checked(path, lines, tuple(check_source(source, torch, chosen)))


def check_source(
    source: Source, torch: tuple[int, int] | None = None, chosen: Sequence[LoadedRule] | None = None
) -> list[Finding]:
    """The findings in one source, in the order of its lines; those that a comment silences are left out."""
    if _SKIP.search(source.text):
        return []
    silenced = _silenced(source.text)
    found = []
    for loaded in rules() if chosen is None else chosen:
        if "python" in loaded.files and loaded.holds_for(torch):
            for hit in loaded.look(source):
                finding = _finding(source, loaded, hit)
                line = finding.location.line if finding.location else 0
                ids = silenced.get(line)
                if ids is None or (ids and finding.id not in ids and loaded.rule.name not in ids):
                    found.append(finding)
    return sorted(
        found,
        key=lambda each: (each.location.line, each.location.column or 0, each.id) if each.location else (0, 0, ""),
    )


def _silenced(text: str) -> dict[int, frozenset[str]]:
    """Line → ids that a comment there silences; none means all."""
    if "torchport:" not in text:
        return {}
    found = {}
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        match = _IGNORE.search(line)
        if match:
            found[number] = frozenset(word.strip() for word in (match[1] or "").split(",") if word.strip())
    return found


def _finding(source: Source, loaded: LoadedRule, hit: Hit) -> Finding:
    rule = loaded.rule
    span = hit.at if isinstance(hit.at, tuple) else source.span(hit.at)
    line, column = source.position(span[0])
    words = {key: _short(value) for key, value in hit.words.items()}
    evidence = tuple(
        Evidence(_(text).format(**words), Location(source.path, *source.position(offset))) for offset, text in hit.seen
    )
    return Finding(
        id=rule.id,
        message=_(rule.message).format(**words),
        severity=hit.severity or rule.severity,
        confidence=hit.confidence or rule.confidence,
        location=Location(source.path, line, column),
        evidence=evidence,
        remedy=_(rule.remedy).format(**words),
        fix=_fix(source, rule.name, hit),
    )


def _short(value: object) -> object:
    """Code in a message: one line of it."""
    if isinstance(value, str) and ("\n" in value or len(value) > 90):
        return " ".join(value.split())[:87] + "…"
    return value


def _fix(source: Source, title: str, hit: Hit) -> Fix | None:
    if not hit.changes:
        return None
    edits: list[Change] = list(hit.changes)
    for module in hit.needs:
        if not _is_bound(source, module, hit):
            edits.append(changes.import_line(source, module))
    return Fix(title, tuple(Edit(source.path, start, end, text) for start, end, text in edits), hit.safe)


def _is_bound(source: Source, module: str, hit: Hit) -> bool:
    """Whether the first name of ``module`` means that module where the hit is."""
    node = hit.at if not isinstance(hit.at, tuple) else source.tree
    found = source.scope_at(node).find(module.split(".")[0])
    return found is not None and any(way.imported == module.split(".")[0] or way.imported == module for way in found[1])


def without_fixes(finding: Finding) -> Finding:
    """A finding whose repair did not work out."""
    return replace(finding, fix=None)

"""Reads the files of a project and runs the rules over them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torchport.check import changes, files
from torchport.check.decoding import decode, module_name
from torchport.check.notebook import Notebook, open_notebook
from torchport.check.rule import Change, Hit, LoadedRule
from torchport.check.rules import rules
from torchport.check.siblings import Siblings
from torchport.check.source import LINE_END, Source, Unreadable
from torchport.check.texts import Text
from torchport.finding import Edit, Evidence, Finding, Fix, Location
from torchport.survey import Problem
from torchport.text import _

_IGNORE = re.compile(r"#\s*torchport:\s*ignore(?:\[([^\]]*)\])?")
_SKIP = re.compile(r"#\s*torchport:\s*skip-file\b")

Readable = Source | Text


@dataclass(frozen=True, slots=True)
class Checked:
    """What one file gave; ``asked`` are the names of other modules that were looked at for it."""

    path: str
    lines: int
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    asked: tuple[str, ...] = ()


def read_source(path: str, data: bytes, siblings: Siblings | None = None) -> tuple[Readable | None, list[Problem]]:
    """The bytes of a file as rules read it; None for one that they do not read, and what is wrong with it."""
    source, problems = _read(path, data)
    if siblings and isinstance(source, Source):
        siblings.attach(source)
    elif siblings:
        siblings.asked = set()
    return source, problems


def _read(path: str, data: bytes) -> tuple[Readable | None, list[Problem]]:
    kind = files.kind_of(path) or "python"
    try:
        if kind not in ("python", "notebook"):
            return Text(path, decode(data, "utf-8-sig"), kind), []
        if b"torch" not in data:
            return None, []
        if kind == "notebook":
            return open_notebook(path, decode(data, "utf-8-sig"))
        return Source(path, decode(data), module_name(path)), []
    except Unreadable as error:
        return None, [Problem(path, str(error), error.line)]


def check_file(
    path: str,
    data: bytes,
    torch: tuple[int, int] | None = None,
    chosen: Sequence[LoadedRule] | None = None,
    siblings: Siblings | None = None,
) -> Checked:
    """Checks the bytes of one file; one that never says torch is not parsed. A rule that fails is a problem."""
    source, problems = read_source(path, data, siblings)
    findings = check_source(source, torch, chosen, problems) if source else []
    if isinstance(source, Notebook):
        findings = [source.placed(finding) for finding in findings]
    asked = tuple(sorted(siblings.asked)) if siblings and source else ()
    return Checked(path, data.count(b"\n") + 1, tuple(findings), tuple(problems), asked)


def check_source(
    source: Readable,
    torch: tuple[int, int] | None = None,
    chosen: Sequence[LoadedRule] | None = None,
    problems: list[Problem] | None = None,
) -> list[Finding]:
    """The findings in one source, in the order of its lines; those that a comment silences are left out.

    A rule that fails raises, or is noted in ``problems`` where that is given.
    """
    if _SKIP.search(source.text):
        return []
    silenced = _silenced(source.text)
    found: list[Finding] = []
    for loaded in rules() if chosen is None else chosen:
        if source.kind not in loaded.files or not loaded.holds_for(torch):
            continue
        try:
            findings = [_finding(source, loaded, hit) for hit in loaded.look(source)]
        except Exception as error:
            if problems is None:
                raise
            what = f"{type(error).__name__}: {error}"
            problems.append(Problem(source.path, _("rule {id} failed: {error}").format(id=loaded.rule.id, error=what)))
            continue
        found += (each for each in findings if not (silenced and _is_silenced(each, loaded.rule.name, silenced)))
    return sorted(
        found,
        key=lambda each: (each.location.line, each.location.column or 0, each.id) if each.location else (0, 0, ""),
    )


def _is_silenced(finding: Finding, name: str, silenced: dict[int, frozenset[str]]) -> bool:
    place = finding.location
    lines = {place.line, place.end_line or place.line} if place else set()
    found = [silenced[line] for line in lines if line in silenced]
    return any(not ids or finding.id in ids or name in ids for ids in found)


def _silenced(text: str) -> dict[int, frozenset[str]]:
    """Line → ids that a comment there, or alone above it, silences; none means all."""
    if "torchport:" not in text:
        return {}
    found = {}
    for number, line in enumerate(LINE_END.split(text), 1):
        match = _IGNORE.search(line)
        if match:
            ids = frozenset(word.strip() for word in (match[1] or "").split(",") if word.strip())
            found[number + 1 if not line[: match.start()].strip() else number] = ids
    return found


def _finding(source: Readable, loaded: LoadedRule, hit: Hit) -> Finding:
    rule = loaded.rule
    span = _span(source, hit)
    line, column = source.position(span[0])
    end_line, end_column = source.position(span[1])
    words = {key: _short(value) for key, value in hit.words.items()}
    evidence = tuple(
        Evidence(_(text).format(**words), Location(source.path, *source.position(offset))) for offset, text in hit.seen
    )
    return Finding(
        id=rule.id,
        message=_(rule.message).format(**words),
        severity=hit.severity or rule.severity,
        confidence=hit.confidence or rule.confidence,
        location=Location(source.path, line, column, end_line=end_line, end_column=end_column),
        evidence=evidence,
        remedy=_(rule.remedy).format(**words),
        fix=_fix(source, rule.name, hit),
    )


def _span(source: Readable, hit: Hit) -> tuple[int, int]:
    if isinstance(hit.at, tuple):
        return hit.at
    return source.span(hit.at) if isinstance(source, Source) else (0, 0)


def _short(value: object) -> object:
    """Code in a message: one line of it."""
    if isinstance(value, str) and ("\n" in value or len(value) > 90):
        return " ".join(value.split())[:87] + "…"
    return value


def _fix(source: Readable, title: str, hit: Hit) -> Fix | None:
    if not hit.changes:
        return None
    edits: list[Change] = list(hit.changes)
    if isinstance(source, Source):
        edits += (changes.import_line(source, name) for name in hit.needs if not _is_bound(source, name, hit))
    return Fix(title, tuple(Edit(source.path, start, end, text) for start, end, text in edits), hit.safe)


def _is_bound(source: Source, module: str, hit: Hit) -> bool:
    """Whether the first name of ``module`` means that module where the hit is."""
    node = hit.at if not isinstance(hit.at, tuple) else source.tree
    found = source.scope_at(node).find(module.split(".")[0])
    return found is not None and any(way.imported == module.split(".")[0] or way.imported == module for way in found[1])

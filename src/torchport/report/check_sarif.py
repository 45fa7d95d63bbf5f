"""A check as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from torchport.finding import Confidence, Finding, Fix, Location, Severity
from torchport.survey import Kind, Lines, Problem, Read, Survey, file_of, fingerprints

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PRECISION = {Confidence.CERTAIN: "very-high", Confidence.LIKELY: "high", Confidence.POSSIBLE: "medium"}


def render(survey: Survey, *, read: Read, version: str) -> str:
    """One run with its rules, results, repairs and fingerprints."""
    rules = sorted(survey.kinds.values(), key=lambda kind: kind.id)
    index = {kind.id: number for number, kind in enumerate(rules)}
    prints = fingerprints(survey.findings, read)
    texts = _Texts(read)
    run = {
        "tool": {"driver": {"name": "torchport", "version": version, "rules": [_rule(kind) for kind in rules]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [_notification(p) for p in survey.problems]}
        ],
        "results": [
            _result(finding, index, fingerprint, texts)
            for finding, fingerprint in zip(survey.findings, prints, strict=True)
        ],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


class _Texts:
    """Lines and columns of offsets in files."""

    def __init__(self, read: Read) -> None:
        self.read = read
        self.lines = Lines(read)

    def region(self, path: str, start: int, end: int) -> dict[str, int] | None:
        text = self.read(path)
        if text is None:
            return None
        line, column = _position(text, start)
        end_line, end_column = _position(text, end)
        return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _rule(kind: Kind) -> dict[str, Any]:
    return {
        "id": kind.id,
        "name": "".join(part.capitalize() for part in kind.name.split("-")),
        "shortDescription": {"text": kind.title or kind.name},
        "fullDescription": {"text": kind.why or kind.title or kind.name},
        "help": {"text": f"torchport explain {kind.id}"},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
        "properties": {"precision": _PRECISION[kind.confidence], "tags": ["pytorch", kind.name]},
    }


def _result(finding: Finding, index: dict[str, int], fingerprint: str, texts: _Texts) -> dict[str, Any]:
    words = finding.message + (f"\n{finding.remedy}" if finding.remedy else "")
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "message": {"text": words},
        "partialFingerprints": {"torchport/v1": fingerprint},
        "properties": {"confidence": finding.confidence.value},
    }
    if finding.id in index:
        result["ruleIndex"] = index[finding.id]
    if finding.location:
        result["locations"] = [_location(finding.location)]
    related = [
        {**_location(each.location), "id": number, "message": {"text": each.text or each.quote}}
        for number, each in enumerate(finding.evidence, 1)
        if each.location
    ]
    if related:
        result["relatedLocations"] = related
    fix = finding.fix and _fix(finding.fix, texts)
    if fix:
        result["fixes"] = [fix]
    return result


def _location(place: Location) -> dict[str, Any]:
    file = file_of(place.path)
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if file != place.path:  # lines count within the cell, which SARIF has no word for
        return {"physicalLocation": physical, "logicalLocations": [{"name": f"{place}", "kind": "module"}]}
    region: dict[str, int] = {"startLine": place.line}
    if place.column:
        region["startColumn"] = place.column
    if place.end_line and place.end_column:
        region |= {"endLine": place.end_line, "endColumn": place.end_column}
    physical["region"] = region
    return {"physicalLocation": physical}


def _artifact(path: str) -> dict[str, str]:
    if PurePosixPath(path).is_absolute():
        return {"uri": "file://" + quote(path)}
    return {"uri": quote(path)}


def _fix(fix: Fix, texts: _Texts) -> dict[str, Any] | None:
    """A repair by lines and columns; None where one of its files cannot be read, or is a notebook."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        region = texts.region(edit.path, edit.start, edit.end) if file_of(edit.path) == edit.path else None
        if region is None:
            return None
        by_file.setdefault(edit.path, []).append({"deletedRegion": region, "insertedContent": {"text": edit.text}})
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements}
            for path, replacements in by_file.items()
        ],
    }


def _notification(problem: Problem) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(file_of(problem.path))}
    if problem.line and file_of(problem.path) == problem.path:
        place["region"] = {"startLine": problem.line}
    return {"level": "warning", "message": {"text": problem.message}, "locations": [{"physicalLocation": place}]}

"""A check for programs: ids, places and repairs, the same in every language.

``message`` and ``remedy`` are as the survey has them; a survey for this report is made in English. Offsets of edits
count characters of the file's text, or of the cell's where the path names one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from torchport.finding import Finding
from torchport.survey import Read, Survey, fingerprints

SCHEMA = "torchport.check/1"


def render(survey: Survey, *, read: Read, exit_code: int) -> str:
    """One JSON object in ASCII."""
    prints = fingerprints(survey.findings, read)
    document = {
        "schema": SCHEMA,
        "exit_code": exit_code,
        "torch": ".".join(map(str, survey.torch)) if survey.torch else None,
        "files": survey.files,
        "lines": survey.lines,
        "seconds": round(survey.seconds, 3),
        "findings": [
            {**_finding(finding, survey.name(finding)), "fingerprint": fingerprint}
            for finding, fingerprint in zip(survey.findings, prints, strict=True)
        ],
        "problems": [asdict(problem) for problem in survey.problems],
        "fixed": [_brief(finding, survey.name(finding)) for finding in survey.fixed],
        "taken_back": [_brief(finding, survey.name(finding)) for finding in survey.taken_back],
        "baseline": {
            "path": survey.baseline,
            "known": survey.known,
            "unused": [asdict(what) for what in survey.unused],
        }
        if survey.baseline
        else None,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _brief(finding: Finding, name: str) -> dict[str, Any]:
    place = finding.location
    return {
        "id": finding.id,
        "name": name,
        "path": place.path if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def _finding(finding: Finding, name: str) -> dict[str, Any]:
    place, fix = finding.location, finding.fix
    return {
        **_brief(finding, name),
        "end_line": place.end_line if place else None,
        "end_column": place.end_column if place else None,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "evidence": [
            {
                "path": each.location.path if each.location else None,
                "line": each.location.line if each.location else None,
                "text": each.text or each.quote,
            }
            for each in finding.evidence
        ],
        "fix": {"safe": fix.safe, "edits": [asdict(edit) for edit in fix.edits]} if fix else None,
    }

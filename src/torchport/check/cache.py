"""What was found in files that have not changed since: ``.torchport/cache/check/`` of the project.

One file holds the results of one state of the rules; without a place that can be written there is no cache.
It only saves time: repairs are never taken from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from torchport.check.engine import Checked
from torchport.check.siblings import Siblings
from torchport.finding import Confidence, Edit, Evidence, Finding, Fix, Location, Severity
from torchport.survey import Problem

_KEPT = 4  # states: two languages, two versions of torch


class Cache:
    """Results by path and content. ``language`` is that of their messages."""

    def __init__(self, project: Path, torch: tuple[int, int] | None, language: str, siblings: Siblings) -> None:
        self._home = project / ".torchport"
        key = repr((rules_digest(), sys.version_info[:3], torch, language, os.path.relpath(siblings.folder, project)))
        self._file = self._home / "cache" / "check" / f"{_digest(key.encode())}.json"
        self._entries: dict[str, Any] = {}
        self._siblings = siblings
        self._changed = False
        with contextlib.suppress(OSError, ValueError):
            entries = json.loads(self._file.read_bytes())
            self._entries = entries if isinstance(entries, dict) else {}

    def get(self, path: str, data: bytes) -> Checked | None:
        """What a file with these bytes gave, None where that is not known."""
        try:
            digest, content = self._entries[path]
            if digest != _digest(data):
                return None
            same = all(self._siblings.digest(path, name) == there for name, there in content["asked"].items())
            return _checked(path, content) if same else None
        except (LookupError, TypeError, ValueError, AttributeError):
            return None

    def put(self, path: str, data: bytes, checked: Checked) -> None:
        content = asdict(checked)
        del content["path"]
        content["asked"] = {name: self._siblings.digest(path, name) for name in checked.asked}
        self._entries[path] = [_digest(data), content]
        self._changed = True

    def save(self) -> None:
        """Writes the results, where that is possible; the oldest states go."""
        if not self._changed:
            return
        folder = self._file.parent
        fresh = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            ignore = self._home / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            fresh.write_text(json.dumps(self._entries, default=_plain), encoding="utf-8")
            fresh.replace(self._file)
            states = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in states[_KEPT:]:
                old.unlink()
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()


@cache
def rules_digest() -> str:
    """A digest of the source of all rules, and of what reads files for them."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _plain(value: object) -> Any:
    if isinstance(value, (Severity, Confidence)):
        return value.value
    raise TypeError(type(value).__name__)


def _checked(path: str, content: dict[str, Any]) -> Checked:
    findings = tuple(map(_finding, content["findings"]))
    problems = tuple(Problem(**each) for each in content["problems"])
    return Checked(path, content["lines"], findings, problems, tuple(content["asked"]))


def _finding(content: dict[str, Any]) -> Finding:
    place, fix = content["location"], content["fix"]
    return Finding(
        id=content["id"],
        message=content["message"],
        severity=Severity(content["severity"]),
        confidence=Confidence(content["confidence"]),
        location=Location(**place) if place else None,
        evidence=tuple(
            Evidence(each["text"], Location(**each["location"]) if each["location"] else None, each["quote"])
            for each in content["evidence"]
        ),
        remedy=content["remedy"],
        fix=Fix(fix["title"], tuple(Edit(**edit) for edit in fix["edits"]), fix["safe"]) if fix else None,
    )

"""The baseline: findings that a project knows and has put off, found again wherever their lines have moved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from torchport.finding import Finding
from torchport.survey import Known, Lines, Read, known
from torchport.text import _

SCHEMA = "torchport.baseline/1"


class BaselineError(Exception):
    """A baseline that is not there or cannot be used."""


def read(path: Path, name: str) -> Counter[Known]:
    """How often each finding is known. ``name`` is how messages call the file. Raises BaselineError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise BaselineError(
                _("{path}: its schema is {schema!r}, and not {known!r}").format(
                    path=name, schema=document["schema"], known=SCHEMA
                )
            )
        rows = document["findings"]
        return Counter({Known(row["id"], row["path"], row["code"]): int(row["count"]) for row in rows})
    except OSError as error:
        raise BaselineError(
            _("{path}: {error}; --write-baseline makes one").format(path=name, error=error.strerror)
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise BaselineError(_("{path}: this is no baseline; --write-baseline makes one").format(path=name)) from None


def written(findings: Iterable[Finding], source: Read, name: Callable[[str], str]) -> str:
    """The baseline that knows these findings. ``name`` is how it calls a file."""
    lines = Lines(source)
    counts = Counter(_named(known(finding, lines), name) for finding in findings)
    rows = [
        {"id": each.id, "path": each.path, "code": each.code, "count": count}
        for each, count in sorted(counts.items(), key=lambda row: (row[0].path, row[0].id, row[0].code))
    ]
    return json.dumps({"schema": SCHEMA, "findings": rows}, indent=1, ensure_ascii=False) + "\n"


def apart(
    findings: Sequence[Finding], baseline: Counter[Known], source: Read, name: Callable[[str], str]
) -> tuple[list[Finding], Counter[Known]]:
    """The findings that the baseline does not know, and what is left of it."""
    if not baseline:
        return list(findings), Counter()
    lines, left = Lines(source), Counter(baseline)
    fresh = []
    for finding in findings:
        what = _named(known(finding, lines), name)
        if left[what] > 0:
            left[what] -= 1
        else:
            fresh.append(finding)
    return fresh, +left


def _named(what: Known, name: Callable[[str], str]) -> Known:
    return replace(what, path=name(what.path))

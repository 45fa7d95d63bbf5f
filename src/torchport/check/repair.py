"""Applies fixes: each is tried, the file read again, and one that does not hold is taken back and said so.

A fix holds if the file still parses, its rule finds less than before, and every name that it wrote is bound.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchport.check.engine import Readable
from torchport.check.source import LINE_END, Source, Unreadable
from torchport.finding import Edit, Finding

_MOST_ROUNDS = 10

Check = Callable[[Any], list[Finding]]  # of what it repairs


@dataclass(frozen=True, slots=True)
class Repaired:
    """A text with fixes applied; ``failed`` are those that did not hold and were taken back."""

    text: str
    applied: tuple[Finding, ...]
    failed: tuple[Finding, ...]


def repair(source: Readable, check: Check, unsafe: bool = False) -> Repaired:
    """Applies the safe fixes of a source, with ``unsafe`` all, until there is none left that holds."""
    applied: list[Finding] = []
    failed: dict[tuple[str, str], Finding] = {}
    findings = check(source)
    for _round in range(_MOST_ROUNDS):
        wanted = [
            each
            for each in findings
            if each.fix is not None and (each.fix.safe or unsafe) and _key(source, each) not in failed
        ]
        if not wanted:
            break
        batch = _apart(wanted)
        done = _held(source, check, findings, batch)
        if done is None:  # at least one of them does not hold
            alone = {id(each): _held(source, check, findings, [each]) for each in batch}
            failed |= {_key(source, each): each for each in batch if alone[id(each)] is None}
            batch = [each for each in batch if alone[id(each)] is not None]
            if not batch:
                continue
            done = _held(source, check, findings, batch)
            if done is None:
                batch = batch[:1]
                done = alone[id(batch[0])]
        if done is None:
            break
        applied += batch
        source, findings = done
    return Repaired(source.written, tuple(applied), tuple(failed.values()))


def edited(text: str, edits: Iterable[Edit]) -> str:
    """A text with edits made; the same edit made twice counts once. Raises ValueError where two overlap."""
    end = len(text) + 1
    for edit in sorted(set(edits), key=lambda each: (each.start, each.end), reverse=True):
        if edit.end > end:
            raise ValueError(f"edits overlap at {edit.start}")
        text = text[: edit.start] + edit.text + text[edit.end :]
        end = edit.start
    return text


def _key(source: Readable, finding: Finding) -> tuple[str, str]:
    """What stays the same of a finding while other lines change."""
    line = finding.location.line if finding.location else 1
    return finding.id, LINE_END.split(source.text)[line - 1].strip()


def _apart(findings: Sequence[Finding]) -> list[Finding]:
    """The findings whose edits touch no other's, first come first served; equal edits are shared, imports say."""
    chosen: list[Finding] = []
    taken: set[Edit] = set()
    for finding in findings:
        edits = set(finding.fix.edits) if finding.fix else set()
        if not any(_touch(edit, other) for edit in edits - taken for other in taken):
            chosen.append(finding)
            taken |= edits
    return chosen


def _touch(edit: Edit, other: Edit) -> bool:
    return edit.start <= other.end and other.start <= edit.end


def _held(
    source: Readable, check: Check, before: Sequence[Finding], batch: Sequence[Finding]
) -> tuple[Readable, list[Finding]] | None:
    """The source with a batch of fixes and what is left in it, or None if one of them does not hold."""
    try:
        text = edited(source.written, [edit for each in batch if each.fix for edit in each.fix.edits])
        fresh = source.again(text)
    except (Unreadable, ValueError):
        return None
    if not _unbound(fresh) <= _unbound(source):
        return None
    left = check(fresh)
    had, have = Counter(each.id for each in before), Counter(each.id for each in left)
    mended = Counter(each.id for each in batch)
    return (fresh, left) if all(have[id] <= had[id] - count for id, count in mended.items()) else None


def _unbound(source: Readable) -> set[str]:
    """The names that nothing in the file binds."""
    if not isinstance(source, Source):
        return set()
    return {
        node.id
        for node in source.nodes(ast.Name)
        if isinstance(node.ctx, ast.Load)
        and not hasattr(builtins, node.id)
        and source.scope_at(node).find(node.id) is None
        and node.id not in ("__file__", "__name__", "__doc__")
    }

"""A stack for programs: kinds and values, the same in every language. There are no sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from torchport.plan import Stack
from torchport.resolved import Compared, Drift, Locked, Nearest, Reason

SCHEMA = "torchport.stack/1"
CHECK_SCHEMA = "torchport.stack-check/1"


def render(locked: Locked) -> str:
    """One JSON object in ASCII. ``stack`` is null where nothing fits, and ``nearest`` then what comes
    near; ``lock.failure`` says why a stack has no hashes, and then it is in no lock."""
    resolved = locked.resolved
    chosen = locked.stack or resolved.stack
    document = {
        "schema": SCHEMA,
        "exit_code": locked.exit_code,
        "stack": _stack(chosen) if chosen else None,
        "target": asdict(resolved.target),
        "wanted": {
            "asked": [asdict(each) for each in resolved.wanted.asked],
            "python": [asdict(each) for each in resolved.wanted.python],
            "cuda": resolved.wanted.cuda and {"version": resolved.wanted.cuda[0], "path": resolved.wanted.cuda[1]},
            "imported": [{"name": name, "path": path} for name, path in resolved.wanted.imported],
            "api": [asdict(each) for each in resolved.wanted.api],
            "skipped": [{"path": path, "line": line} for path, line in resolved.wanted.skipped],
        },
        "why": _reasons(resolved.why),
        "notes": _reasons(resolved.notes),
        "rejected": [
            {"torch": each.torch, "backend": each.backend, "reasons": _reasons(each.reasons)}
            for each in resolved.rejected
        ],
        "nearest": [_nearest(each) for each in resolved.nearest],
        "upgrades": [_nearest(each) for each in resolved.upgrades],
        "lock": {
            "path": locked.path,
            "failure": locked.failure or None,
            "beside": locked.beside,
            "changed": None
            if locked.changed is None
            else [{"name": name, "before": before or None, "now": now or None} for name, before, now in locked.changed],
            "disagreements": [
                {"what": what, "table": said, "wheels": seen} for what, said, seen in locked.disagreements
            ],
        },
        "seconds": round(locked.seconds, 3),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def render_compared(compared: Compared) -> str:
    document = {
        "schema": CHECK_SCHEMA,
        "exit_code": compared.exit_code,
        "path": compared.path,
        "python": compared.python,
        "stacks": [
            {"name": stack.name, "torch": stack.torch, "drifts": _reasons(found)} for stack, found in compared.stacks
        ],
        "elsewhere": compared.elsewhere,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _reasons(reasons: Iterable[Reason | Drift]) -> list[dict[str, Any]]:
    return [{"kind": each.kind, **dict(each.values)} for each in reasons]


def _nearest(near: Nearest) -> dict[str, Any]:
    stack = near.stack
    return {
        "torch": stack.torch,
        "backend": stack.backend,
        "python": stack.python,
        "driver": stack.driver,
        "instead": _reasons(near.instead),
    }


def _stack(stack: Stack) -> dict[str, Any]:
    return {"name": stack.name, **asdict(stack)}

"""A migration for programs: ids, places, repairs and losses, the same in every language.

``schema`` names the format. There are no sentences but the patch: what a finding says follows from its ``id``.
Losses are given as numbers and, bit for bit, in hexadecimal.
"""

from __future__ import annotations

import json
import math
from typing import Any

from torchport.finding import Finding
from torchport.migrated import Migrated, Proof

SCHEMA = "torchport.migration/1"


def render(migrated: Migrated) -> str:
    """One JSON object in ASCII, with no number that JSON does not have."""
    document = {
        "schema": SCHEMA,
        "entry": migrated.entry,
        "exit_code": migrated.exit_code,
        "seconds": round(migrated.seconds, 3),
        "clean": migrated.clean,
        "used_gpu": migrated.used_gpu,
        "gpus": migrated.gpus,
        "ranks": migrated.ranks,
        "rounds": migrated.rounds,
        "works_on_cpu": migrated.works_on_cpu,
        "gave_device": migrated.gave_device,
        "patch": migrated.patch,
        "patch_path": migrated.patch_path or None,
        "applied": migrated.applied,
        "backup": migrated.backup,
        "findings": [
            *(_finding(each, "confirmed") for each in migrated.confirmed),
            *(_finding(each, "only_run") for each in migrated.only_run),
            *(_finding(each, "unreached") for each in migrated.unreached),
        ],
        "left": [_finding(each, None) for each in migrated.left],
        "repaired": list(migrated.repaired),
        "refused": list(migrated.refused),
        "losses": {
            "reference": "rehearsal" if migrated.by_rehearsal else "cpu",
            "on_gpu": _proof(migrated.on_gpu),
            "on_cpu": _proof(migrated.on_cpu),
        },
        "draws": [{"op": operator, "place": place} for place, operator in migrated.draws],
        "recipes": [
            {
                "recipe": each.recipe,
                "applied": each.applied,
                "on_gpu": _proof(each.on_gpu),
                "on_cpu": _proof(each.on_cpu),
                "proof": _proof(each.proof),
            }
            for each in migrated.recipes
        ],
        "failure": migrated.failure or None,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _finding(finding: Finding, seen: str | None) -> dict[str, Any]:
    """``seen`` is confirmed (read and run), only_run, or unreached (read only)."""
    place = finding.location
    row = {
        "id": finding.id,
        "path": place.path if place else None,
        "line": place.line if place else None,
        "severity": finding.severity.value,
    }
    return {**row, "seen": seen} if seen else row


def _proof(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "same": proof.same,
        "first_difference": proof.first,
        "before": [_loss(value) for value in proof.before],
        "after": [_loss(value) for value in proof.after],
    }


def _loss(value: float) -> dict[str, Any]:
    return {"value": value if math.isfinite(value) else None, "hex": value.hex()}

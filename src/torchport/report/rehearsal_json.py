"""A rehearsal for programs: ids and numbers, the same in every language.

``schema`` names the format. There are no sentences: what a finding says follows from ``id`` and ``fields``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torchport.finding import Finding, Location
from torchport.plan import Run
from torchport.record import Loss, Peak, Record, Site
from torchport.report.rehearsal_summary import summarise

SCHEMA = "torchport.rehearsal/1"


def render(run: Run) -> str:
    """One JSON object in ASCII, with no number that JSON does not have."""
    plan, summary = run.plan, summarise(run)
    document = {
        "schema": SCHEMA,
        "argv": plan.argv,
        "kind": plan.kind,
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "processes": plan.processes,
        "virtual": plan.virtual and asdict(plan.virtual),
        "folder": run.folder,
        "exit_code": run.exit_code,
        "seconds": run.seconds,
        "findings": [_finding(finding, run.records) for finding in run.findings],
        "ranks": [_rank(record) for record in run.records],
        "operators": [{"op": op, "count": count} for op, count in summary.operators],
        "transfers": [asdict(moved) for moved in summary.transfers],
        "syncs": [{"op": op, "count": count, "site": site} for site, op, count in summary.syncs],
    }
    return json.dumps(_plain(document), indent=2, allow_nan=False) + "\n"


def _finding(finding: Finding, records: tuple[Record, ...]) -> dict[str, Any]:
    """``fields`` are those of every observation with this id at this place, as the ranks wrote them."""
    return {
        "id": finding.id,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "location": finding.location,
        "count": finding.count,
        "ranks": finding.ranks,
        "places": [evidence.location for evidence in finding.evidence if evidence.location and evidence.text],
        "fields": [
            observation.fields
            for record in records
            for observation in record.findings
            if observation.id == finding.id and _same(observation.site, finding.location)
        ],
    }


def _same(site: Site | None, location: Location | None) -> bool:
    if site is None or location is None:
        return site is None and location is None
    return (site.path, site.line) == (location.path, location.line)


def _rank(record: Record) -> dict[str, Any]:
    return {
        "rank": record.rank,
        "record": record.path,
        "torn": record.torn,
        "exit": record.exit,
        "steps": [asdict(step) for step in record.steps],
        "losses": [_loss(loss) for loss in record.losses],
        "peaks": [_peak(peak) for peak in record.peaks],
        "draws": [{"op": op, "count": count, "site": site} for site, op, count in record.draws],
    }


def _loss(loss: Loss) -> dict[str, Any]:
    return {"step": loss.step, "value": loss.value, "hex": loss.value.hex(), "site": loss.site}


def _peak(peak: Peak) -> dict[str, Any]:
    return {**asdict(peak), "holders": [{**asdict(holder), "site": holder.site} for holder in peak.holders]}


def _plain(value: Any) -> Any:
    """The value in JSON's own types; infinities and NaN are null."""
    if isinstance(value, Site):
        return {"path": value.path, "line": value.line, "function": value.function}
    if isinstance(value, Location):
        return {"path": value.path, "line": value.line, "function": value.function}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)

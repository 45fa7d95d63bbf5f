"""The records of a rehearsal → findings: what was observed, merged over ranks, and what the numbers show."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from torchport.explain import rehearsal_patterns, rehearsal_words
from torchport.finding import Finding
from torchport.record import Observation, Record

# Of these there is one in a run, however many ranks saw it, each from its own line.
_OF_THE_RUN = frozenset({"R401", "R402", "R404", "R405"})


def findings(records: tuple[Record, ...]) -> tuple[Finding, ...]:
    """All findings of one run, errors first, otherwise in the order in which they showed.

    The same fault at one place on several ranks is one finding, with the ranks and the sum of the counts.
    """
    told = (*_observed(records), *rehearsal_patterns.findings(records))
    return tuple(sorted(told, key=lambda finding: finding.severity, reverse=True))


def _observed(records: tuple[Record, ...]) -> list[Finding]:
    seen: dict[Hashable, Finding] = {}
    for record in records:
        ranks = (record.rank,) if len(records) > 1 else ()
        for observation in record.findings:
            key = _identity(observation)
            before = seen.get(key)
            if before is None:
                # What concerns the ranks together stands in rank 0's record, and names the ranks itself.
                own = () if observation.id in _OF_THE_RUN else ranks
                seen[key] = replace(rehearsal_words.finding(observation), ranks=own)
            else:
                ranks_seen = tuple(sorted({*before.ranks, *ranks})) if before.ranks else ()
                seen[key] = replace(before, count=before.count + observation.count, ranks=ranks_seen)
    return list(seen.values())


def _identity(observation: Observation) -> Hashable:
    """What makes two observations the same fault: id, place, operation, tensors; not device or shape."""
    if observation.id in _OF_THE_RUN:
        return observation.id
    fields: dict[str, Any] = observation.fields
    tensors = tuple(
        (
            str(tensor.get("name")),
            str(tensor.get("parameter")),
            str(tensor.get("argument")),
            str(tensor.get("born")),
        )
        for tensor in rehearsal_words.tensors(fields)
    )
    words = tuple(str(fields.get(name)) for name in ("op", "api", "offender", "what", "in_backward"))
    return (observation.id, observation.site, words, tensors)

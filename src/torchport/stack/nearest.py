"""What to offer where nothing is left: the builds that miss the fewest wishes by the least."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchport.resolved import Target, Wanted
from torchport.stack.judge import WISHES, Candidate
from torchport.stack.releases import Table, cuda_of, numbers
from torchport.stack.versions import admits, requirement

_MOST = 3
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_DRIVER = {"driver", "driver-ptx"}


def nearest(candidates: Sequence[Candidate], wanted: Wanted, target: Target, table: Table) -> tuple[Candidate, ...]:
    """One build for each smallest set of wishes to give up, nearest first.

    A build that the machine cannot run is never offered, but for what only needs a newer driver, which can be had.
    """
    groups: dict[frozenset[str], list[Candidate]] = {}
    for each in candidates:
        kinds = frozenset(reason.kind for reason in each.reasons)
        if kinds <= {*WISHES, *_DRIVER}:
            groups.setdefault(kinds, []).append(each)

    def distance(each: Candidate) -> tuple[object, ...]:
        build = each.build
        newest_first = tuple(-part for part in numbers(build.torch)), tuple(-part for part in cuda_of(build.backend))
        plain = build.index(target.platform.rpartition("-")[2]) is None
        off = _releases_off(each, wanted, table), _cuda_off(each, wanted, target)
        return (*off, newest_first[0], not plain, newest_first[1])

    smallest = [group for kinds, group in groups.items() if not any(other < kinds for other in groups)]
    chosen = [min(group, key=distance) for group in smallest]
    return tuple(sorted(chosen, key=lambda each: (_needs_driver(each), len(each.reasons), distance(each)))[:_MOST])


def _needs_driver(each: Candidate) -> bool:
    return any(reason.kind in _DRIVER for reason in each.reasons)


def _releases_off(each: Candidate, wanted: Wanted, table: Table) -> int:
    """How many releases a build is from the nearest that is let in, 0 where it is let in itself."""
    specifiers = [str(requirement(asked.text).specifier) for asked in wanted.asked if asked.name == "torch"]
    versions = list(table.releases)
    meant = [
        place for place, version in enumerate(versions) if all(_admits_release(one, version) for one in specifiers)
    ]
    if not meant:  # a release that the table does not have: where it would stand
        named = [numbers(found[0]) for one in specifiers for found in _VERSION.finditer(one)]
        meant = [sum(numbers(version) < one for version in versions) for one in named] or [len(versions)]
    place = versions.index(each.build.torch)
    return min(abs(place - other) for other in meant)


def _admits_release(specifiers: str, version: str) -> bool:
    """Whatever build a pin such as "==2.0.1+cu118" names, its release is what counts here."""
    return admits(",".join(part.split("+")[0] for part in specifiers.split(",")), version)


def _cuda_off(each: Candidate, wanted: Wanted, target: Target) -> tuple[int, int]:
    asked = target.cuda or (wanted.cuda[0] if wanted.cuda else None)
    if not asked or not numbers(asked) or not cuda_of(each.build.backend):
        return (0, 0)
    wish, have = (*numbers(asked), 0)[:2], cuda_of(each.build.backend)
    if wish[0] == have[0]:
        return (0, abs(wish[1] - have[1]))
    return (abs(wish[0] - have[0]), have[1] if have[0] > wish[0] else -have[1])

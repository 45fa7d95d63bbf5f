"""Ranks that wait for each other for ever: told from their records while they still run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchport.launch.follow import Collective
from torchport.record import Site

# Long enough for a loaded machine to bring all ranks to the same line, short enough to be no wait.
PATIENCE_S = 3.0
# For ranks that call the same as far as records tell; they may differ in the source rank, say.
LONG_PATIENCE_S = 30.0

# In these, every rank gives tensors of the same shape; of the others only the operation is compared.
SAME_SHAPES = frozenset({"all_reduce", "all_reduce_coalesced", "broadcast", "reduce", "all_gather_into_tensor"})
POINT_TO_POINT = frozenset({"send", "recv"})


GONE = -1000  # the exit code of a process that is not ours and is no more


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank now. ``code`` is None while it lives, ``waits_s`` is how long it has been idle in ``inside``,
    ``entered`` how many collectives it has come to.
    """

    rank: int
    code: int | None = None
    inside: Collective | None = None
    waits_s: float = 0.0
    passed: tuple[Collective, ...] = ()
    entered: int = 0

    @property
    def stuck(self) -> bool:
        return self.code is None and self.inside is not None and self.waits_s > PATIENCE_S


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the ranks will not end by themselves: the id of a finding, its fields and its place."""

    id: str
    fields: dict[str, Any]
    site: Site | None


def judge(states: Sequence[RankState]) -> Verdict | None:
    """R402 where a rank has ended and others wait for it, R401 where all wait and not for the same."""
    living = [state for state in states if state.code is None]
    stuck = [state for state in living if state.stuck]
    if not stuck:
        return None
    if (call := _mismatch(states)) is not None:
        return _verdict("R401", None, states, call.key)
    failed = first_failure(states)
    if failed is not None:
        return _verdict("R402", failed, states)
    if len(stuck) < len(living):
        return None
    ended = [state.rank for state in states if state.code == 0]
    if ended:
        return _verdict("R402", ended[0], states)
    if _differ([state.inside for state in stuck if state.inside is not None], min(s.waits_s for s in stuck)):
        return _verdict("R401", None, states)
    return None


def first_failure(states: Sequence[RankState]) -> int | None:
    """The rank that failed; of several the one that came least far, for want of which the others may have."""
    failed = [state for state in states if state.code]
    return min(failed, key=lambda state: state.entered).rank if failed else None


def judge_failure(states: Sequence[RankState]) -> Verdict | None:
    """Once a rank has failed: R401 where ranks differed in one call, R402 for the rank that ended before it came to
    a collective that others came to, for want of which they may have failed.
    """
    if (call := _mismatch(states)) is not None:
        return _verdict("R401", None, states, call.key)
    ended = [state for state in states if state.code is not None]
    if not ended:
        return None
    first = min(ended, key=lambda state: (state.entered, state.code == 0))
    for state in states:
        if state.entered > first.entered or (state.inside and not first.inside):
            return _verdict("R402", first.rank, states)
    return None


def judge_timeout(states: Sequence[RankState]) -> Verdict | None:
    """R405 for a rank that is busy elsewhere when the time is up and others wait in a collective."""
    absent = [state for state in states if state.code is None and state.inside is None]
    if absent and any(state.stuck for state in states):
        return _verdict("R405", absent[0].rank, states)
    return None


def _differ(calls: Sequence[Collective], waited_s: float) -> bool:
    if waited_s > LONG_PATIENCE_S:
        return True
    if all(call.op in POINT_TO_POINT for call in calls):
        return False
    if len({(call.op, call.key) for call in calls}) > 1:
        return True
    return calls[0].op in SAME_SHAPES and len({(call.shapes, call.dtype) for call in calls}) > 1


def _mismatch(states: Sequence[RankState]) -> Collective | None:
    """A call in which a rank is that another rank of the group makes, or made, by another name or with other shapes."""
    for state in states:
        mine = state.inside
        if mine is None or mine.op in POINT_TO_POINT:
            continue
        same = [call for other in states if (call := _called(other, mine.key)) is not None]
        if len({call.op for call in same}) > 1:
            return mine
        if mine.op in SAME_SHAPES and len({(call.shapes, call.dtype) for call in same}) > 1:
            return mine
    return None


def _called(state: RankState, key: tuple[str, int]) -> Collective | None:
    """What a rank called that others know by a key."""
    if state.inside is not None and state.inside.key == key:
        return state.inside
    return next((call for call in reversed(state.passed) if call.key == key), None)


def _verdict(id: str, blamed: int | None, states: Sequence[RankState], key: tuple[str, int] | None = None) -> Verdict:
    """``key`` is the call that the verdict is about, None for the latest of each rank."""
    rows = []
    for state in states:
        call = state.inside or (state.passed[-1] if state.passed else None)
        if key is not None:
            call = _called(state, key) or call
        rows.append(
            {
                "rank": state.rank,
                "state": _state(state, state.rank == blamed),
                "code": state.code,
                "op": call.op if call else None,
                "shapes": list(call.shapes) if call else [],
                "site": call.site if call else None,
            }
        )
    waiting = next((state.inside for state in states if state.rank != blamed and state.inside), None)
    if key is not None:
        waiting = next((call for state in states if (call := _called(state, key)) is not None), waiting)
    common = last_common(states)
    return Verdict(
        id=id,
        fields={
            "rank": blamed,
            "ranks": rows,
            "last_common": {"op": common.op, "shapes": list(common.shapes), "site": common.site} if common else None,
        },
        site=waiting.site if waiting else None,
    )


def _state(state: RankState, blamed: bool) -> str:
    """A rank that was in a collective when it ended has waited there, unless it is the one that was waited for."""
    if state.inside is not None and not (blamed and state.code is not None):
        return "enter"
    if state.code is not None:
        return "gone" if state.code == GONE else "died" if state.code else "ended"
    return "leave"


def last_common(states: Sequence[RankState]) -> Collective | None:
    """The latest collective that all ranks have passed."""
    others = [{(call.key, call.op) for call in state.passed} for state in states[1:]]
    shared = (call for call in reversed(states[0].passed) if all((call.key, call.op) in passed for passed in others))
    return next(shared, None)

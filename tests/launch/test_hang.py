"""Which waits of ranks for each other are for ever, and whom they are blamed on."""

import pytest

from torchport.launch.follow import Collective
from torchport.launch.hang import (
    PATIENCE_S,
    RankState,
    first_failure,
    judge,
    judge_failure,
    judge_timeout,
    last_common,
)
from torchport.record import Site

LONG = PATIENCE_S + 1


def call(op="all_reduce", sequence=3, shapes=("[8]",), line=10, group="0"):
    return Collective(op, sequence, shapes, "float32", Site("train.py", line), group)


def waits(rank, inside, seconds=LONG, passed=()):
    return RankState(rank, None, inside, seconds, tuple(passed))


def ended(rank, code, passed=(), inside=None, entered=0):
    return RankState(rank, code, inside, 0.0, tuple(passed), entered)


def busy(rank, passed=()):
    return RankState(rank, None, None, 0.0, tuple(passed))


CASES = {
    "all in the same collective": ([waits(0, call()), waits(1, call())], None),
    "one still computes": ([waits(0, call()), busy(1)], None),
    "not long yet": ([waits(0, call(), 1.0), waits(1, call("broadcast"), 1.0)], None),
    "different operations": ([waits(0, call()), waits(1, call("barrier"))], ("R401", None)),
    "different shapes": ([waits(0, call()), waits(1, call(shapes=("[9]",)))], ("R401", None)),
    "shapes of a scatter differ": (
        [waits(0, call("scatter", shapes=("[2, 8]",))), waits(1, call("scatter", shapes=("[8]",)))],
        None,
    ),
    "a send and its receive": ([waits(0, call("send")), waits(1, call("recv"))], None),
    "a receive that meets a reduction": ([waits(0, call("recv")), waits(1, call())], ("R401", None)),
    "the same for the second time": (
        [waits(0, call(sequence=3)), waits(1, call(sequence=4))],
        ("R401", None),
    ),
    "the same in another group": ([waits(0, call()), waits(1, call(group="1"))], ("R401", None)),
    "no end in sight": ([waits(0, call(), 60), waits(1, call(), 60)], ("R401", None)),
    "both receive": ([waits(0, call("recv"), 60), waits(1, call("recv"), 60)], ("R401", None)),
    "one has failed": ([waits(0, call()), ended(1, 1)], ("R402", 1)),
    "one was killed": ([ended(0, -9), waits(1, call())], ("R402", 0)),
    "one had fewer batches and is done": ([waits(0, call()), ended(1, 0)], ("R402", 1)),
    "one is done, another still computes": ([waits(0, call()), ended(1, 0), busy(2)], None),
    "one has failed, another still computes": ([waits(0, call()), ended(1, 1), busy(2)], ("R402", 1)),
    "all are done": ([ended(0, 0), ended(1, 0)], None),
}


@pytest.mark.parametrize("name", CASES)
def test_judge(name):
    states, expected = CASES[name]
    verdict = judge(states)
    assert (verdict and (verdict.id, verdict.fields["rank"])) == expected


def test_the_verdict_names_rank_line_and_last_common_collective():
    common = call(sequence=1, line=5)
    verdict = judge([waits(0, call(sequence=2), passed=[common]), ended(1, -9, passed=[common])])
    assert verdict is not None
    assert verdict.site == Site("train.py", 10)
    assert verdict.fields["last_common"] == {
        "op": "all_reduce",
        "shapes": ["[8]"],
        "site": Site("train.py", 5),
    }
    assert [(row["rank"], row["state"], row["site"].line) for row in verdict.fields["ranks"]] == [
        (0, "enter", 10),
        (1, "died", 5),
    ]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([ended(0, 1, entered=5), ended(1, 1, entered=4)], 1),
        ([ended(0, 1), ended(1, 0)], 0),
        ([ended(0, 0), busy(1)], None),
    ],
)
def test_first_failure(states, expected):
    assert first_failure(states) == expected


@pytest.mark.parametrize(
    ("states", "blamed"),
    [
        ([ended(0, 1, entered=5), ended(1, 1, entered=4)], 1),
        ([ended(0, 1, inside=call(), entered=5), ended(1, -9, entered=4)], 1),
        ([ended(0, 1, inside=call(), entered=5), ended(1, 0, entered=4)], 1),
        ([waits(0, call(), 0.5), ended(1, 1)], 1),
        ([ended(0, 1, inside=call(), entered=4), ended(1, 1, inside=call(), entered=4)], None),
        ([ended(0, 0, entered=4), ended(1, 1, entered=4)], None),
        ([busy(0), ended(1, 1)], None),
    ],
)
def test_judge_failure(states, blamed):
    verdict = judge_failure(states)
    assert (verdict and verdict.fields["rank"]) == blamed


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([waits(0, call()), busy(1)], ("R405", 1)),
        ([waits(0, call(), 1.0), busy(1)], None),
        ([busy(0), busy(1)], None),
    ],
)
def test_judge_timeout(states, expected):
    verdict = judge_timeout(states)
    assert (verdict and (verdict.id, verdict.fields["rank"])) == expected


def test_last_common():
    first, second, other = call(sequence=1), call(sequence=2), call("barrier", sequence=3)
    assert last_common([busy(0, [first, second, call(sequence=3)]), busy(1, [first, second, other])]) == second
    assert last_common([busy(0, [first]), busy(1)]) is None

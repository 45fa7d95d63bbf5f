"""What the losses of a migrated project are measured by."""

import pytest

from torchport.facts import Facts
from torchport.migrate.reference import of_rehearsal
from torchport.plan import Plan, Run
from torchport.record import Loss, Record


def run(gpus, *losses):
    plan = Plan(("train.py",), "script", "python", "/", "/", gpus_per_node=gpus)
    record = Record("record.jsonl", {}, (), tuple(Loss(0, value, None) for value in losses))
    return Run("", plan, Facts(), (record,), (), 0, 1.0)


@pytest.mark.parametrize(
    ("plain", "works", "gpus", "first", "expected"),
    [
        ((1.0, 2.0), True, 1, (1.0, 2.0), False),
        ((1.0,), False, 1, (1.0, 2.0), True),  # the run on the CPU failed
        ((), True, 2, (1.0, 2.0), True),  # one rank a GPU, and without one nothing is trained
        ((1.0, 2.0), True, 2, (1.0,), False),  # the rehearsal came less far
        ((1.0, 2.0), True, 2, (1.0, 2.0 + 1e-6), True),  # halves of a batch, added up in another order
        ((1.0, 2.0), True, 1, (1.0, 2.0 + 1e-6), False),  # on one GPU there is no reason for that
        ((1.0, 2.0), True, 2, (1.0, 2.1), False),  # another loss, and no rounding
    ],
)
def test_by_the_cpu_or_by_a_rehearsal(plain, works, gpus, first, expected):
    assert of_rehearsal(run(1, *plain), works, run(gpus, *first)) is expected

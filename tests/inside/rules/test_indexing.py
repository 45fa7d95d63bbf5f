"""Rules 29-31 and 84-86: reading and writing by index."""

import numpy as np
import pytest
import torch
from rule_cases import CUDA, OTHER, Legal, Refused, ones, two_devices

HOST = "cpu"


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


def put(target, where, value):
    target[where] = value
    return target


ON_SELF_OR_CPU = "indices should be either on cpu or on the same device as the indexed tensor ({})"
VALUE = "expected device cuda:0 but got device cpu for value tensor"

CASES = (
    Refused(29, "cpu[cuda index]", lambda cuda: ones(3)[index(1, device=cuda)], ON_SELF_OR_CPU.format("cpu")),
    Refused(29, "cpu[cuda mask]", lambda cuda: ones(3)[ones(3, device=cuda) > 0], ON_SELF_OR_CPU.format("cpu")),
    Refused(
        29,
        "cpu[:, cuda index]",
        lambda cuda: ones(2, 3)[:, index(1, device=cuda)],
        ON_SELF_OR_CPU.format("cpu"),
    ),
    Refused(
        29,
        "cpu[cpu index, cuda index]",
        lambda cuda: ones(2, 3)[index(1), index(1, device=cuda)],
        ON_SELF_OR_CPU.format("cpu"),
    ),
    Refused(
        29,
        "index of the other GPU",
        lambda cuda: ones(3, device=cuda)[index(1, device=OTHER)],
        ON_SELF_OR_CPU.format("cuda:0"),
    ),
    Refused(
        30,
        "accumulate",
        lambda cuda: ones(3, device=cuda).index_put_((index(1, 2),), ones(2), accumulate=True),
        VALUE,
    ),
    Refused(85, "index_put", lambda cuda: ones(3, device=cuda).index_put((index(1, 2),), ones(2)), two_devices()),
    Refused(
        85,
        "cuda[index] = cpu",
        lambda cuda: put(ones(3, device=cuda), index(1, 2, device=cuda), ones(2)),
        two_devices(),
    ),
    Refused(
        85,
        "cuda[mask] = cpu of two elements",
        lambda cuda: put(ones(2, device=cuda), ones(2, device=cuda) > 0, ones(2)),
        two_devices(),
    ),
    Refused(
        84,
        "cpu[cpu index] = cuda vector",
        lambda cuda: put(ones(3), index(1, 2), ones(2, device=cuda)),
        two_devices(),
    ),
    Refused(
        84,
        "cpu[cuda index] = cuda vector",
        lambda cuda: put(ones(3), index(1, 2, device=cuda), ones(2, device=cuda)),
        two_devices(),
    ),
    Legal(29, "cuda[cpu index]", lambda cuda: ones(3, device=cuda)[index(1)]),
    Legal(29, "cuda[cpu mask]", lambda cuda: ones(3, device=cuda)[ones(3) > 0]),
    Legal(29, "cuda[list]", lambda cuda: ones(3, device=cuda)[[0, 2]]),
    Legal(29, "cuda[array]", lambda cuda: ones(3, device=cuda)[np.array([0, 2])]),
    Legal(
        29,
        "cuda[cpu index, cuda index]",
        lambda cuda: ones(2, 3, device=cuda)[index(1), index(1, device=cuda)],
    ),
    Legal(30, "zero-dim value", lambda cuda: put(ones(3, device=cuda), index(1), scalar())),
    Legal(
        30,
        "zero-dim value, accumulate",
        lambda cuda: ones(3, device=cuda).index_put_((index(1),), scalar(), accumulate=True),
    ),
    Legal(31, "cuda[i] = cpu", lambda cuda: put(ones(3, 2, device=cuda), 1, ones(2))),
    Legal(31, "cuda[a:b] = cpu", lambda cuda: put(ones(3, device=cuda), slice(1, 3), ones(2))),
    Legal(31, "cpu[a:b] = cuda", lambda cuda: put(ones(3), slice(1, 3), ones(2, device=cuda)), device=HOST),
    Legal(31, "cuda[...] = other GPU", lambda cuda: put(ones(3, device=cuda), ..., ones(3, device=OTHER))),
    Legal(84, "cpu[cuda index] = number", lambda cuda: put(ones(3), index(1, device=cuda), 2.0), device=HOST),
    Legal(84, "cpu[cuda index] = cpu", lambda cuda: put(ones(3), index(1, 2, device=cuda), ones(2)), device=HOST),
    Legal(84, "cpu[cuda mask] = number", lambda cuda: put(ones(3), ones(3, device=cuda) > 0, 2.0), device=HOST),
    Legal(
        86,
        "cuda[mask] = one-element cpu",
        lambda cuda: put(ones(3, device=cuda), ones(3, device=cuda) > 0, ones(1)),
    ),
    Legal(86, "cuda[mask] = number", lambda cuda: put(ones(3, device=cuda), ones(3, device=cuda) > 0, 2.0)),
)


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Refused)], ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Legal)], ids=str)
def test_legal(case, session):
    case.check(session)


def test_row_30_deterministic_mode_sorts_the_index(session):
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError) as caught:
            ones(3, device=CUDA).index_put_((index(1, 2),), ones(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert str(caught.value) == VALUE

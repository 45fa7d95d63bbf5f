"""Rules 17-28: TensorIterator, which excuses one zero-dim CPU input and no output."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, Legal, Refused, arange, ones, torch_at_least, two_devices

HOST = "cpu"


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


FLOATS = (
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "pow",
    "float_power",
    "atan2",
    "fmod",
    "remainder",
    "minimum",
    "maximum",
    "max",
    "min",
    "fmin",
    "fmax",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "xlogy",
    "ldexp",
    "heaviside",
    "copysign",
    "rsub",
)
INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
# These allocate their result beside their first argument, so a zero-dim CPU tensor may only come second.
LOGICAL = ("logical_and", "logical_or", "logical_xor")
BINARY = FLOATS + INTEGERS + LOGICAL


def call(name, first, second):
    if name in INTEGERS:
        first, second = first.int(), second.int()
    return getattr(torch, name)(first, second)


@pytest.mark.parametrize("name", BINARY)
def test_row_17_two_devices(name, session):
    for first, second in (
        (ones(3, device=CUDA), ones(3)),
        (ones(3), ones(3, device=CUDA)),
        (ones(3, device=CUDA), ones(1)),
        (scalar(device=CUDA), ones(3)),
        (ones(3), scalar(device=CUDA)),
    ):
        with pytest.raises(RuntimeError) as caught:
            call(name, first, second)
        assert str(caught.value) == two_devices()


@pytest.mark.parametrize("name", BINARY)
def test_row_18_a_zero_dim_cpu_tensor_is_read_on_the_host(name, session):
    value = ones(3, device=CUDA)
    assert call(name, value, scalar()).device == torch.device(CUDA)
    assert call(name, scalar(device=CUDA), scalar()).device == torch.device(CUDA)
    if name not in LOGICAL:
        assert call(name, scalar(), value).device == torch.device(CUDA)


@pytest.mark.parametrize("name", BINARY)
def test_row_19_two_zero_dim_cpu_tensors_stay(name, session):
    assert call(name, scalar(), scalar()).device == torch.device(HOST)


@pytest.mark.parametrize("name", BINARY)
def test_row_24_two_gpus(name, session):
    # rsub(a, b) is computed as sub(b, a).
    text = two_devices(OTHER, CUDA) if name == "rsub" else two_devices(CUDA, OTHER)
    for second in (ones(3, device=OTHER), scalar(device=OTHER)):
        with pytest.raises(RuntimeError) as caught:
            call(name, ones(3, device=CUDA), second)
        assert str(caught.value) == text


LOSSES = {
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "l1_loss": lambda x, y: F.l1_loss(x, y),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y),
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="sum"),
    "poisson_nll_loss": lambda x, y: F.poisson_nll_loss(x, y),
    "cross_entropy with probabilities": lambda x, y: F.cross_entropy(x[None], y[None]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_row_26_loss_target_on_the_cpu(name, session):
    with pytest.raises(RuntimeError) as caught:
        LOSSES[name](ones(3, device=CUDA), ones(3))
    assert str(caught.value) == two_devices()


def test_row_26_huber_loss(session):
    # huber_loss has no `device_check: NoCheck`, so its generated check speaks before TensorIterator.
    with pytest.raises(RuntimeError, match=r"in method wrapper_CUDA__huber_loss\)$"):
        F.huber_loss(ones(3, device=CUDA), ones(3))


def quietly(loss, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the two sizes differ, which is the point
        return loss(*arguments)


def number_to_addcmul(cuda):
    return torch.addcmul(*[ones(3, device=cuda)] * 2, scalar())


def number_to_lerp(cuda):
    return torch.lerp(*[ones(3, device=cuda)] * 2, scalar())


# What TensorIterator did not excuse in older versions, as its C++ says when run on meta tensors.
REFUSED_ONCE = (
    *([] if torch_at_least("2.7") else [Refused(21, "addcmul", number_to_addcmul, two_devices())]),
    *([] if torch_at_least("2.6") else [Refused(22, "lerp weight", number_to_lerp, two_devices())]),
)

REFUSED = (
    *REFUSED_ONCE,
    Refused(
        20,
        "addcmul",
        lambda cuda: torch.addcmul(ones(3, device=cuda), scalar(), scalar()),
        "Trying to pass too many CPU scalars to non-CPU kernel!" if torch_at_least("2.7") else two_devices(),
    ),
    Refused(
        20,
        "lerp",
        lambda cuda: torch.lerp(ones(3, device=cuda), scalar(), scalar()),
        "Trying to pass too many CPU scalars to non-CPU kernel!" if torch_at_least("2.6") else two_devices(),
    ),
    Refused(
        21,
        "addcdiv",
        lambda cuda: torch.addcdiv(ones(3, device=cuda), ones(3, device=cuda), scalar()),
        two_devices(),
    ),
    Refused(
        21,
        "addcmul of dimension 1",
        lambda cuda: torch.addcmul(*[ones(3, device=cuda)] * 2, ones(3)),
        two_devices(),
    ),
    Refused(
        22,
        "lerp end of dimension 1",
        lambda cuda: torch.lerp(ones(3, device=cuda), ones(3), 0.5),
        two_devices(),
    ),
    Refused(23, "cpu.add_", lambda cuda: ones(3).add_(ones(3, device=cuda)), two_devices()),
    Refused(23, "cpu +=", lambda cuda: ones(3).__iadd__(ones(3, device=cuda)), two_devices()),
    Refused(23, "zero-dim cpu.add_", lambda cuda: scalar().add_(scalar(device=cuda)), two_devices()),
    Refused(23, "zero-dim cpu.mul_", lambda cuda: scalar().mul_(ones(3, device=cuda)), two_devices()),
    Refused(23, "cuda.add_", lambda cuda: ones(3, device=cuda).add_(ones(3)), two_devices()),
    Refused(
        24,
        "first GPU is named first",
        lambda cuda: ones(3, device=OTHER) + ones(3, device=cuda),
        two_devices(OTHER, CUDA),
    ),
    Refused(
        24,
        "in place",
        lambda cuda: ones(3, device=cuda).add_(ones(3, device=OTHER)),
        two_devices(CUDA, OTHER),
    ),
    Refused(25, "add out", lambda cuda: torch.add(*[ones(3, device=cuda)] * 2, out=ones(3)), two_devices()),
    Refused(25, "exp out", lambda cuda: torch.exp(ones(3, device=cuda), out=ones(3)), two_devices()),
    Refused(
        25,
        "cpu operands, cuda out",
        lambda cuda: torch.add(ones(3), ones(3), out=ones(3, device=cuda)),
        two_devices(),
    ),
    Refused(
        25,
        "sum out",
        lambda cuda: torch.sum(ones(2, 3, device=cuda), 0, out=ones(3)),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    Refused(
        25,
        "cumsum out",
        lambda cuda: torch.cumsum(ones(3, device=cuda), 0, out=ones(3)),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    Refused(
        25,
        "max out",
        lambda cuda: torch.max(ones(2, 3, device=cuda), 0, out=(ones(3), ones(3).long())),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    # F.mse_loss expands its target first: zero-dim no more.
    Refused(
        26,
        "mse_loss, zero-dim target",
        lambda cuda: quietly(F.mse_loss, ones(3, device=cuda), scalar()),
        two_devices(),
    ),
    Refused(
        26,
        "bce_with_logits pos_weight",
        lambda cuda: F.binary_cross_entropy_with_logits(*[ones(3, device=cuda)] * 2, pos_weight=ones(3)),
        two_devices(),
    ),
    Refused(27, "_foreach_add", lambda cuda: torch._foreach_add([ones(3, device=cuda)], [ones(3)]), two_devices()),
    Refused(
        27,
        "_foreach_add_",
        lambda cuda: torch._foreach_add_([ones(3)], [ones(3, device=cuda)]),
        two_devices(),
    ),
    Refused(
        27,
        "_foreach_mul_, second of two",
        lambda cuda: torch._foreach_mul_([ones(3, device=cuda)] * 2, [ones(3, device=cuda), ones(3)]),
        two_devices(),
    ),
    Refused(
        28,
        "where condition",
        lambda cuda: torch.where(ones(3).bool(), *[ones(3, device=cuda)] * 2),
        two_devices(),
    ),
    Refused(
        28,
        "where other",
        lambda cuda: torch.where(ones(3, device=cuda).bool(), ones(3, device=cuda), ones(3)),
        two_devices(),
    ),
    Refused(17, "outer", lambda cuda: torch.outer(ones(2, device=cuda), ones(3)), two_devices()),
    Refused(
        17,
        "index_fill_",
        lambda cuda: ones(3, device=cuda).index_fill_(0, torch.tensor([1]), 2.0),
        two_devices(),
    ),
    Refused(17, "operator", lambda cuda: arange(3.0) * ones(3, device=cuda), two_devices()),
    Refused(17, "comparison", lambda cuda: ones(3, device=cuda) == ones(3), two_devices()),
    Refused(
        17,
        "accuracy, as everybody writes it",
        lambda cuda: (ones(4, 2, device=cuda).argmax(1) == torch.zeros(4).long()).sum(),
        two_devices(),
    ),
)

LEGAL = (
    Legal(18, "fill_ with a number of the CPU", lambda cuda: ones(3, device=cuda).fill_(scalar())),
    Legal(18, "fill_ with a number of the GPU", lambda cuda: ones(3).fill_(scalar(device=cuda)), device=HOST),
    Legal(18, "Python numbers", lambda cuda: 2 * ones(3, device=cuda) ** 2 / 3 - 1),
    Legal(18, "in place", lambda cuda: ones(3, device=cuda).add_(scalar()).mul_(scalar(2.0))),
    Legal(21, "addcmul", number_to_addcmul, since="2.7"),
    Legal(22, "lerp weight", number_to_lerp, since="2.6"),
    Legal(22, "lerp end", lambda cuda: torch.lerp(ones(3, device=cuda), scalar(), 0.5)),
    Legal(27, "_foreach_copy_ to the GPU", lambda cuda: torch._foreach_copy_([ones(3, device=cuda)], [ones(3)])),
    Legal(
        27,
        "_foreach_copy_ from the GPU",
        lambda cuda: torch._foreach_copy_([ones(3)], [ones(3, device=cuda)]),
        device=HOST,
    ),
    Legal(
        27,
        "lists of one device each",
        lambda cuda: torch._foreach_add([ones(3, device=cuda), ones(3, device=cuda)], 1.0),
    ),
    Legal(28, "zero-dim condition", lambda cuda: torch.where(scalar(True), *[ones(3, device=cuda)] * 2)),
    Legal(
        28,
        "zero-dim self",
        lambda cuda: torch.where(ones(3, device=cuda).bool(), scalar(), ones(3, device=cuda)),
    ),
    Legal(
        28,
        "zero-dim other",
        lambda cuda: torch.where(ones(3, device=cuda).bool(), ones(3, device=cuda), scalar()),
    ),
    Legal(28, "both zero-dim", lambda cuda: torch.where(ones(3, device=cuda).bool(), scalar(), scalar(2.0))),
    Legal(28, "numbers", lambda cuda: torch.where(ones(3, device=cuda) > 0, 1.0, 0.0)),
)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", LEGAL, ids=str)
def test_legal(case, session):
    case.check(session)

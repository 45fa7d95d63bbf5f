"""Rules 1-10: the check that torchgen writes in front of CUDA kernels ("ExactSame")."""

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, Refused, exact_same, ones, torch_at_least, zeros
from torch import nn

HOST = "cpu"


def wrapped(argument, method, on=HOST, others=CUDA):
    return exact_same(argument, on, others, f"wrapper_CUDA_{method}")


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


REFUSED = (
    # Rules 1-5: matrix products.
    Refused(1, "mm", lambda cuda: ones(2, 3, device=cuda).mm(ones(3, 2)), wrapped("mat2", "mm")),
    Refused(
        1,
        "mm of two GPUs",
        lambda cuda: ones(2, 3, device=cuda) @ ones(3, 2, device=OTHER),
        wrapped("mat2", "mm", on=OTHER),
    ),
    Refused(
        1,
        "mm, GPU second",
        lambda cuda: ones(2, 3) @ ones(3, 2, device=cuda),
        wrapped("mat2", "mm", on=CUDA, others=HOST),
    ),
    Refused(
        3,
        "linear, cpu input",
        lambda cuda: nn.Linear(4, 3, device=cuda)(ones(2, 4)),
        wrapped("mat1", "addmm"),
    ),
    Refused(
        3,
        "linear, cpu input of three dimensions",
        lambda cuda: nn.Linear(4, 3, device=cuda)(ones(2, 5, 4)),
        wrapped("mat1", "addmm"),
    ),
    Refused(
        3,
        "linear without bias, cpu input",
        lambda cuda: nn.Linear(4, 3, bias=False, device=cuda)(ones(2, 4)),
        wrapped("mat2", "mm", on=CUDA, others=HOST),
    ),
    Refused(
        4,
        "linear, cpu module",
        lambda cuda: nn.Linear(4, 3)(ones(2, 4, device=cuda)),
        wrapped("mat1", "addmm", on=CUDA, others=HOST),
    ),
    Refused(
        4,
        "linear, module on the other GPU",
        lambda cuda: nn.Linear(4, 3, device=OTHER)(ones(2, 4, device=cuda)),
        wrapped("mat1", "addmm", on=CUDA, others=OTHER),
    ),
    Refused(5, "matmul", lambda cuda: torch.matmul(ones(2, 3, device=cuda), ones(3, 2)), wrapped("mat2", "mm")),
    Refused(5, "bmm", lambda cuda: torch.bmm(ones(1, 2, 3, device=cuda), ones(1, 3, 2)), wrapped("mat2", "bmm")),
    Refused(
        5,
        "matmul of batches",
        lambda cuda: ones(2, 2, 3, device=cuda) @ ones(2, 3, 2),
        wrapped("mat2", "bmm"),
    ),
    Refused(
        5,
        "einsum",
        lambda cuda: torch.einsum("bij,bjk->bik", ones(1, 2, 2, device=cuda), ones(1, 2, 2)),
        wrapped("mat2", "bmm"),
    ),
    Refused(
        5,
        "baddbmm",
        lambda cuda: torch.baddbmm(ones(1, 2, 2), *[ones(1, 2, 2, device=cuda)] * 2),
        wrapped("batch1", "baddbmm", on=CUDA, others=HOST),
    ),
    # mv allocates its result beside the vector and calls addmv_(result, mat, vec).
    Refused(5, "mv", lambda cuda: ones(2, 3, device=cuda) @ ones(3), wrapped("mat", "addmv_", CUDA, HOST)),
    Refused(5, "dot", lambda cuda: ones(3, device=cuda) @ ones(3), wrapped("tensor", "_dot")),
    # Rules 6 and 7: embedding.
    Refused(
        6,
        "embedding, cpu indices",
        lambda cuda: F.embedding(index(0, 1), ones(2, 3, device=cuda)),
        wrapped("index", "_index_select"),
    ),
    Refused(
        6,
        "Embedding module, cpu indices of two dimensions",
        lambda cuda: nn.Embedding(4, 3, device=cuda)(zeros(2, 2, dtype=torch.long)),
        wrapped("index", "_index_select"),
    ),
    Refused(
        7,
        "embedding, cpu weight",
        lambda cuda: nn.Embedding(4, 3)(index(0, 1, device=cuda)),
        wrapped("index", "_index_select", on=CUDA, others=HOST),
    ),
    # Rule 8: class targets.
    Refused(
        8,
        "cross_entropy target",
        lambda cuda: F.cross_entropy(ones(2, 3, device=cuda), index(0, 1)),
        wrapped("target", "nll_loss_forward"),
    ),
    Refused(
        8,
        "nll_loss target",
        lambda cuda: F.nll_loss(ones(2, 3, device=cuda), index(0, 1)),
        wrapped("target", "nll_loss_forward"),
    ),
    Refused(
        8,
        "cpu logits",
        lambda cuda: F.cross_entropy(ones(2, 3), index(0, 1, device=cuda)),
        wrapped("target", "nll_loss_forward", on=CUDA, others=HOST),
    ),
    Refused(
        8,
        "class weight",
        lambda cuda: F.cross_entropy(ones(2, 3, device=cuda), index(0, 1, device=cuda), weight=ones(3)),
        wrapped("weight", "nll_loss_forward"),
    ),
    Refused(
        8,
        "target of two dimensions",
        lambda cuda: F.cross_entropy(ones(1, 3, 2, 2, device=cuda), zeros(1, 2, 2, dtype=torch.long)),
        wrapped("target", "_nll_loss2d_forward"),
    ),
    # Rule 9: cat and stack take no zero-dim CPU tensor either.
    Refused(9, "cat", lambda cuda: torch.cat([ones(2, device=cuda), ones(2)]), wrapped("tensors", "cat")),
    Refused(
        9,
        "cat, cpu first",
        lambda cuda: torch.cat([ones(2), ones(2, device=cuda)]),
        wrapped("tensors", "cat", on=CUDA, others=HOST),
    ),
    Refused(9, "stack", lambda cuda: torch.stack([ones(2, device=cuda), ones(2)]), wrapped("tensors", "cat")),
    Refused(
        9,
        "stack of zero-dim",
        lambda cuda: torch.stack([scalar(device=cuda), scalar()]),
        wrapped("tensors", "cat"),
    ),
    Refused(9, "hstack", lambda cuda: torch.hstack([ones(2, device=cuda), ones(2)]), wrapped("tensors", "cat")),
    # Rule 10: indices, masks and sources by name.
    Refused(10, "gather", lambda cuda: ones(3, device=cuda).gather(0, index(1)), wrapped("index", "gather")),
    Refused(
        10,
        "scatter_ value",
        lambda cuda: ones(3, device=cuda).scatter_(0, index(1), 2.0),
        wrapped("index", "scatter__value"),
    ),
    Refused(
        10,
        "scatter src",
        lambda cuda: ones(3, device=cuda).scatter(0, index(1, device=cuda), ones(1)),
        wrapped("src", "scatter_src"),
    ),
    Refused(
        10,
        "scatter_add_",
        lambda cuda: ones(3, device=cuda).scatter_add_(0, index(1), ones(1, device=cuda)),
        wrapped("index", "scatter_add_"),
    ),
    Refused(
        10,
        "scatter_reduce",
        lambda cuda: ones(3, device=cuda).scatter_reduce(0, index(1), ones(1, device=cuda), "sum"),
        wrapped("index", "scatter_reduce_two"),
    ),
    Refused(
        10,
        "index_select",
        lambda cuda: ones(3, device=cuda).index_select(0, index(1)),
        wrapped("index", "_index_select"),
    ),
    Refused(
        10,
        "index_add_",
        lambda cuda: ones(3, device=cuda).index_add_(0, index(1), ones(1, device=cuda)),
        wrapped("index", "index_add_"),
    ),
    Refused(
        10,
        "index_add source",
        lambda cuda: ones(3, device=cuda).index_add(0, index(1, device=cuda), ones(1)),
        wrapped("source", "index_add"),
    ),
    Refused(
        10,
        "index_copy_",
        lambda cuda: ones(3, device=cuda).index_copy_(0, index(1), ones(1, device=cuda)),
        wrapped("index", "index_copy_"),
    ),
    Refused(10, "take", lambda cuda: ones(3, device=cuda).take(index(1)), wrapped("index", "_take")),
    Refused(
        10,
        "put_",
        lambda cuda: ones(3, device=cuda).put_(index(1), ones(1, device=cuda)),
        wrapped("index", "_put_"),
    ),
    Refused(
        10,
        "masked_select",
        lambda cuda: ones(3, device=cuda).masked_select(ones(3).bool()),
        wrapped("mask", "_masked_select"),
    ),
    Refused(
        10,
        "masked_scatter_",
        lambda cuda: ones(3, device=cuda).masked_scatter_(ones(3).bool(), ones(3, device=cuda)),
        wrapped("mask", "_masked_scatter_"),
    ),
    Refused(
        10,
        "masked_scatter source",
        lambda cuda: ones(3, device=cuda).masked_scatter(ones(3, device=cuda).bool(), ones(3)),
        wrapped("source", "_masked_scatter_"),
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case, session):
    case.check()


def test_row_2_the_text_follows_the_installed_torch():
    text = exact_same("mat1", "cpu", "cuda:0", "wrapper_CUDA_addmm")
    assert ("found at least two devices, cuda:0 and cpu!" in text) == (not torch_at_least("2.8"))

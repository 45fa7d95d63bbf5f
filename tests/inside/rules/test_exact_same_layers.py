"""Rules 11-16: the check that torchgen writes, for layers, losses, optimizers and ``out=``."""

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, Refused, arange, exact_same, ones, torch_at_least, zeros
from torch import nn

HOST = "cpu"


def wrapped(argument, method, on=HOST, others=CUDA):
    return exact_same(argument, on, others, f"wrapper_CUDA_{method}")


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


def batch_norm(device, shape, weight=CUDA, mean=CUDA):
    c = shape[1]
    return F.batch_norm(
        ones(*shape, device=device),
        zeros(c, device=mean),
        ones(c, device=mean),
        ones(c, device=weight),
        zeros(c, device=weight),
        training=True,
    )


def fused_adam(device):
    def lists(*devices):
        return [[ones(3, device=d)] for d in devices]

    params, grads, averages, squares = lists(device, HOST, device, device)
    torch._fused_adam_(
        params,
        grads,
        averages,
        squares,
        [],
        [ones((), device=device)],
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )


def lstm_cell(device, input_on=CUDA, hidden_on=CUDA, cell_on=CUDA, parameters_on=CUDA):
    cell = nn.LSTMCell(2, 3).to(parameters_on)
    return cell(ones(1, 2, device=input_on), (ones(1, 3, device=hidden_on), ones(1, 3, device=cell_on)))


REFUSED = (
    # Rules 11 and 12: normalisation.
    Refused(
        11,
        "layer_norm, cpu module",
        lambda cuda: nn.LayerNorm(3)(ones(2, 3, device=cuda)),
        wrapped("weight", "_native_layer_norm"),
    ),
    Refused(
        11,
        "layer_norm, cpu input",
        lambda cuda: nn.LayerNorm(3, device=cuda)(ones(2, 3)),
        wrapped("weight", "_native_layer_norm", on=CUDA, others=HOST),
    ),
    Refused(
        11,
        "group_norm",
        lambda cuda: nn.GroupNorm(1, 2)(ones(2, 2, 3, device=cuda)),
        wrapped("weight", "_native_group_norm"),
    ),
    Refused(
        12,
        "batch_norm of two dimensions",
        lambda cuda: batch_norm(cuda, (4, 2), weight=HOST),
        wrapped("weight", "_native_batch_norm"),
    ),
    Refused(
        12,
        "batch_norm of two dimensions, statistics",
        lambda cuda: batch_norm(cuda, (4, 2), mean=HOST),
        wrapped("running_mean", "_native_batch_norm"),
    ),
    # cuDNN takes float input of three and more dimensions that has weight, bias and statistics.
    Refused(
        12,
        "batch_norm of four dimensions",
        lambda cuda: batch_norm(cuda, (4, 2, 3, 3), weight=HOST),
        wrapped("weight", "_cudnn_batch_norm"),
    ),
    Refused(
        12,
        "batch_norm of four dimensions, statistics",
        lambda cuda: batch_norm(cuda, (4, 2, 3, 3), mean=HOST),
        wrapped("running_mean", "_cudnn_batch_norm"),
    ),
    # Rules 13 and 14: elementwise operators that excuse no zero-dim CPU tensor.
    Refused(13, "clamp min", lambda cuda: ones(3, device=cuda).clamp(min=zeros(3)), wrapped("min", "clamp_Tensor")),
    Refused(
        13,
        "clamp zero-dim min",
        lambda cuda: ones(3, device=cuda).clamp(min=scalar()),
        wrapped("min", "clamp_Tensor"),
    ),
    Refused(
        13,
        "clamp max",
        lambda cuda: torch.clamp(ones(3, device=cuda), max=scalar()),
        wrapped("max", "clamp_Tensor"),
    ),
    Refused(
        13,
        "clamp_min",
        lambda cuda: torch.clamp_min(ones(3, device=cuda), scalar()),
        wrapped("min", "clamp_min_Tensor"),
    ),
    Refused(
        13,
        "clamp_max_",
        lambda cuda: ones(3, device=cuda).clamp_max_(scalar()),
        wrapped("max", "clamp_max__Tensor"),
    ),
    *(
        Refused(
            14,
            f"{name}, zero-dim",
            lambda cuda, name=name: getattr(torch, name)(ones(3, device=cuda), scalar()),
            wrapped("other", name),
        )
        for name in ("logaddexp", "logaddexp2", "igamma", "igammac", "nextafter")
    ),
    *(
        Refused(
            14,
            f"{name}, zero-dim",
            lambda cuda, name=name: getattr(torch, name)(index(4, device=cuda), scalar(2)),
            wrapped("other", name),
        )
        for name in ("gcd", "lcm")
    ),
    # Rule 15: the rest of the table, by sample.
    *(
        Refused(
            15,
            name,
            lambda cuda, name=name, rest=rest: getattr(torch.ops.aten, name)(ones(3), ones(3, device=cuda), *rest),
            wrapped(second, name, on=CUDA, others=HOST),
        )
        for name, second, rest in (
            ("gelu_backward", "self", ()),
            ("sigmoid_backward", "output", ()),
            ("tanh_backward", "output", ()),
            ("silu_backward", "self", ()),
            ("threshold_backward", "self", (0,)),
        )
    ),
    Refused(15, "equal", lambda cuda: torch.equal(ones(3, device=cuda), ones(3)), wrapped("other", "_equal")),
    Refused(15, "dot", lambda cuda: torch.dot(ones(3, device=cuda), ones(3)), wrapped("tensor", "_dot")),
    Refused(
        15,
        "vdot",
        lambda cuda: torch.vdot(ones(3), ones(3, device=cuda)),
        wrapped("other", "_vdot", on=CUDA, others=HOST),
    ),
    Refused(15, "fused Adam", fused_adam, wrapped("grads", "__fused_adam_")),
    Refused(
        15,
        "fused LSTM cell",
        lambda cuda: torch.ops.aten._thnn_fused_lstm_cell(ones(1, 8, device=cuda), ones(1, 8, device=cuda), ones(1, 2)),
        wrapped("cx", "__thnn_fused_lstm_cell"),
    ),
    Refused(
        15,
        "LSTMCell, cpu cell state",
        lambda cuda: lstm_cell(cuda, cell_on=HOST),
        wrapped("cx", "__thnn_fused_lstm_cell"),
    ),
    Refused(
        15,
        "LSTMCell, cpu hidden state",
        lambda cuda: lstm_cell(cuda, hidden_on=HOST),
        wrapped("mat2", "mm", on=CUDA, others=HOST),
    ),
    Refused(15, "LSTMCell, cpu module", lambda cuda: lstm_cell(cuda, parameters_on=HOST), wrapped("mat2", "mm")),
    Refused(
        15,
        "attention mask",
        lambda cuda: F.scaled_dot_product_attention(*[ones(1, 1, 2, 4, device=cuda)] * 3, attn_mask=ones(2, 2)),
        wrapped("attn_bias", "__scaled_dot_product_efficient_attention"),
    ),
    Refused(15, "prelu", lambda cuda: F.prelu(ones(3, device=cuda), ones(1)), wrapped("weight", "__prelu_kernel")),
    Refused(
        15,
        "cdist",
        lambda cuda: torch.cdist(ones(3, 2, device=cuda), ones(3, 2)),
        wrapped("x2", "__cdist_forward"),
    ),
    Refused(
        15,
        "bucketize",
        lambda cuda: torch.bucketize(ones(3, device=cuda), arange(3.0)),
        wrapped("boundaries", "Tensor_bucketize"),
    ),
    Refused(
        15,
        "isin",
        lambda cuda: torch.isin(ones(3, device=cuda), ones(3)),
        wrapped("test_elements", "isin_Tensor_Tensor"),
    ),
    Refused(
        15,
        "bincount weights",
        lambda cuda: torch.bincount(index(1, device=cuda), ones(1)),
        wrapped("weights", "_bincount"),
    ),
    Refused(
        15,
        "normal",
        lambda cuda: torch.normal(zeros(3, device=cuda), ones(3)),
        wrapped("std", "Tensor_Tensor_normal"),
    ),
    Refused(
        15,
        "triangular solve",
        lambda cuda: torch.linalg.solve_triangular(ones(2, 2, device=cuda), ones(2, 1), upper=True),
        wrapped("B", "_linalg_solve_triangular"),
    ),
    Refused(
        15,
        "cross",
        lambda cuda: torch.linalg.cross(ones(2, 3, device=cuda), ones(2, 3)),
        wrapped("other", "linalg_cross"),
    ),
    Refused(
        15,
        "complex",
        lambda cuda: torch.complex(ones(3, device=cuda), ones(3)),
        wrapped("imag", "out_complex_out"),
    ),
    # Rule 16: out is checked first.
    Refused(
        16,
        "mm out",
        lambda cuda: torch.mm(*[ones(2, 2, device=cuda)] * 2, out=ones(2, 2)),
        wrapped("self", "mm_out_out", on=CUDA, others=HOST),
    ),
    Refused(
        16,
        "cat out",
        lambda cuda: torch.cat([ones(2, device=cuda)], out=ones(2)),
        wrapped("tensors", "cat_out_out", on=CUDA, others=HOST),
    ),
    Refused(
        16,
        "gather out",
        lambda cuda: torch.gather(ones(3, device=cuda), 0, index(1, device=cuda), out=ones(1)),
        wrapped("self", "gather_out_out", on=CUDA, others=HOST),
    ),
    Refused(
        16,
        "topk out",
        lambda cuda: torch.topk(ones(3, device=cuda), 1, out=(ones(1), index(1))),
        wrapped("self", "topk_out_values", on=CUDA, others=HOST),
    ),
    Refused(
        16,
        "topk out, one of two",
        lambda cuda: torch.topk(ones(3, device=cuda), 1, out=(ones(1, device=cuda), index(1))),
        wrapped("indices", "topk_out_values"),
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case, session):
    case.check()


def test_row_14_hypot_was_exact_until_torch_2_9(session):
    def mixed():
        return torch.hypot(ones(3, device=CUDA), scalar())

    if torch_at_least("2.10"):
        assert mixed().device == torch.device(CUDA)
    else:
        with pytest.raises(RuntimeError, match="in method wrapper_CUDA_hypot"):
            mixed()

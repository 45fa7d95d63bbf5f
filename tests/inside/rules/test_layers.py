"""Rules 32-34, 38, 40, 42 and 43: checks written by hand in layers, losses and masks."""

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, Legal, Refused, exact_same, ones, zeros
from torch import nn
from torch.nn.utils import rnn

HOST = "cpu"


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


def conv_types(input_type, kind, other_type, mkldnn=False):
    text = f"Input type (torch.{input_type}) and {kind} type (torch.{other_type}) should be the same"
    return text + (f" or input should be a MKLDNN tensor and {kind} is a dense tensor" if mkldnn else "")


def rnn_device(kind, on_input, on_other):
    return (
        f"Input and {kind} tensors are not at the same device, found input tensor at {on_input} and {kind} "
        "tensor at "
        f"{on_other}"
    )


MASK = "expected self and mask to be on the same device, but got mask on {} and self on {}"

CASES = (
    # oneDNN takes float input on the CPU from these sizes on, and has its own words.
    Refused(
        32,
        "conv2d, cpu input",
        lambda cuda: nn.Conv2d(3, 8, 3, device=cuda)(ones(16, 3, 8, 8)),
        conv_types("FloatTensor", "weight", "cuda.FloatTensor", mkldnn=True),
    ),
    Refused(
        32,
        "conv2d, cpu module",
        lambda cuda: nn.Conv2d(3, 8, 3)(ones(16, 3, 8, 8, device=cuda)),
        conv_types("cuda.FloatTensor", "weight", "FloatTensor"),
    ),
    Refused(
        32,
        "conv1d, cpu module",
        lambda cuda: nn.Conv1d(3, 8, 3)(ones(16, 3, 8, device=cuda)),
        conv_types("cuda.FloatTensor", "weight", "FloatTensor"),
    ),
    Refused(
        32,
        "conv3d, cpu module",
        lambda cuda: nn.Conv3d(3, 8, 3)(ones(2, 3, 8, 8, 8, device=cuda)),
        conv_types("cuda.FloatTensor", "weight", "FloatTensor"),
    ),
    Refused(
        32,
        "conv_transpose2d, cpu module",
        lambda cuda: nn.ConvTranspose2d(3, 8, 3)(ones(2, 3, 8, 8, device=cuda)),
        conv_types("cuda.FloatTensor", "weight", "FloatTensor"),
    ),
    Refused(
        32,
        "conv2d of doubles, cpu input",
        lambda cuda: nn.Conv2d(3, 8, 3).double().to(cuda)(ones(16, 3, 8, 8).double()),
        conv_types("DoubleTensor", "weight", "cuda.DoubleTensor"),
    ),
    Refused(
        32,
        "conv2d bias",
        lambda cuda: F.conv2d(ones(16, 3, 8, 8, device=cuda), ones(8, 3, 3, 3, device=cuda), ones(8)),
        conv_types("cuda.FloatTensor", "bias", "FloatTensor"),
    ),
    Refused(
        32,
        "conv2d dtype",
        lambda cuda: nn.Conv2d(3, 8, 3, device=cuda)(ones(16, 3, 8, 8, device=cuda).half()),
        "Input type (c10::Half) and bias type (float) should be the same",
    ),
    Refused(
        32,
        "conv2d of two GPUs",
        lambda cuda: F.conv2d(ones(16, 3, 8, 8, device=cuda), ones(8, 3, 3, 3, device=OTHER)),
        exact_same("weight", OTHER, CUDA, "wrapper_CUDA__cudnn_convolution"),
    ),
    Refused(
        33,
        "LSTM, cpu input",
        lambda cuda: nn.LSTM(2, 3, device=cuda)(ones(4, 1, 2)),
        rnn_device("parameter", "cpu", "cuda:0"),
    ),
    Refused(
        33,
        "GRU, cpu module",
        lambda cuda: nn.GRU(2, 3)(ones(4, 1, 2, device=cuda)),
        rnn_device("parameter", "cuda:0", "cpu"),
    ),
    Refused(
        33,
        "RNN, cpu module",
        lambda cuda: nn.RNN(2, 3)(ones(4, 1, 2, device=cuda)),
        rnn_device("parameter", "cuda:0", "cpu"),
    ),
    Refused(
        33,
        "LSTM, cpu hidden state",
        lambda cuda: nn.LSTM(2, 3, device=cuda)(ones(4, 1, 2, device=cuda), (zeros(1, 1, 3), zeros(1, 1, 3))),
        rnn_device("hidden", "cuda:0", "cpu"),
    ),
    Refused(
        33,
        "GRU, cpu hidden state",
        lambda cuda: nn.GRU(2, 3, device=cuda)(ones(4, 1, 2, device=cuda), zeros(1, 1, 3)),
        rnn_device("hidden", "cuda:0", "cpu"),
    ),
    Refused(
        34,
        "attention",
        lambda cuda: F.scaled_dot_product_attention(ones(1, 1, 2, 4, device=cuda), *[ones(1, 1, 2, 4)] * 2),
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 "
        "key.device: "
        "cpu and value.device: cpu instead.",
    ),
    Refused(
        38,
        "masked_fill mask",
        lambda cuda: ones(3, device=cuda).masked_fill(ones(3) > 0, 0.0),
        MASK.format("cpu", "cuda:0"),
    ),
    Refused(
        38,
        "masked_fill_ mask, number from a tensor",
        lambda cuda: ones(3, device=cuda).masked_fill_(ones(3) > 0, scalar()),
        MASK.format("cpu", "cuda:0"),
    ),
    Refused(
        38,
        "masked_fill_ cpu self",
        lambda cuda: ones(3).masked_fill_(ones(3, device=cuda) > 0, 0.0),
        MASK.format("cuda:0", "cpu"),
    ),
    Refused(
        38,
        "masked_fill_ value of dimension 1",
        lambda cuda: ones(3, device=cuda).masked_fill_(ones(3, device=cuda) > 0, ones(1)),
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).",
    ),
    Refused(
        38,
        "masked_fill_ cuda value",
        lambda cuda: ones(3).masked_fill_(ones(3) > 0, scalar(device=cuda)),
        "masked_fill_: Expected inputs to be on same device",
    ),
    Refused(
        40,
        "lengths on the GPU",
        lambda cuda: rnn.pack_padded_sequence(ones(3, 1, 2, device=cuda), index(3, device=cuda)),
        "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
    ),
    Refused(
        42,
        "embedding of floats",
        lambda cuda: F.embedding(ones(2, device=cuda), ones(2, 3, device=cuda)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
        "but got "
        "torch.cuda.FloatTensor instead (while checking arguments for embedding)",
    ),
    Refused(
        43,
        "class target of floats",
        lambda cuda: F.cross_entropy(ones(2, 3, device=cuda), ones(2, device=cuda)),
        "Float",
        part=True,
    ),
    Legal(33, "LSTM on the GPU", lambda cuda: nn.LSTM(2, 3, device=cuda)(ones(4, 1, 2, device=cuda))),
    Legal(
        38,
        "zero-dim cpu value",
        lambda cuda: ones(3, device=cuda).masked_fill_(ones(3, device=cuda) > 0, scalar()),
    ),
    Legal(
        40,
        "lengths on the CPU",
        lambda cuda: rnn.pack_padded_sequence(ones(3, 1, 2, device=cuda), index(3)).data,
    ),
)


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Refused)], ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Legal)], ids=str)
def test_legal(case, session):
    case.check(session)


def test_row_34_wording_is_the_same_for_two_gpus(session):
    with pytest.raises(RuntimeError, match=r"query\.device: cuda:0 key\.device: cuda:1"):
        F.scaled_dot_product_attention(ones(1, 2, 4, device=CUDA), *[ones(1, 2, 4, device=OTHER)] * 2)


def test_row_43_names_the_wanted_type(session):
    with pytest.raises(RuntimeError, match="Long"):
        F.nll_loss(ones(2, 3, device=CUDA), ones(2, device=CUDA))

"""Shapes only: tensors on a card hold no numbers, and have the shapes that they have on the CPU."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torchport.inside.vcuda import virtual_cuda


def of(module, *shapes):
    """A module in training and in evaluation on inputs of these shapes."""

    def outputs(device):
        inputs = [torch.randn(shape, device=device) for shape in shapes]
        made = module().to(device)
        trained = made(*inputs)
        with torch.no_grad():
            return trained, made.eval()(*inputs)

    return outputs


class Weighed(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.options = options

    def forward(self, x):
        return self.attention(x, x, x, **self.options)


class Packed(nn.Module):
    """A recurrent layer on sequences of different lengths."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(8, 4)

    def forward(self, x):
        packed = pack_padded_sequence(x, torch.tensor([5, 3]))
        return pad_packed_sequence(self.layer(packed)[0])


def masked(device):
    """Without numbers a mask selects everything, as this one does with them."""
    x = torch.randn(2, 3, device=device)
    y = x.clone()
    y[x == x] = x[x == x]
    y[x == x] = 0.0
    return x[x == x], x[:, (x == x)[0]], x.masked_select(x == x), y


def layer():
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)


CASES = {
    "linear": of(lambda: nn.Linear(8, 3), (2, 8)),
    "convolution": of(lambda: nn.Conv2d(3, 4, 3), (2, 3, 8, 8)),
    "batch norm": of(lambda: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "LSTM": of(lambda: nn.LSTM(8, 4, 2, bidirectional=True), (5, 2, 8)),
    "GRU": of(lambda: nn.GRU(8, 4), (5, 2, 8)),
    "packed sequences": of(Packed, (5, 2, 8)),
    "masks": masked,
    "attention": of(Weighed, (2, 5, 8)),
    "attention, a matrix a head": of(lambda: Weighed(average_attn_weights=False), (2, 5, 8)),
    "attention without weights": of(lambda: Weighed(need_weights=False), (2, 5, 8)),
    "encoder layer": of(layer, (2, 5, 8)),
    "encoder": of(lambda: nn.TransformerEncoder(layer(), 2), (2, 5, 8)),
    "attention kernel": lambda device: scaled_dot_product_attention(*torch.randn(3, 2, 4, 5, 8, device=device)),
}


def shapes(value):
    """Shapes of all tensors in nested tuples. Without numbers, an empty tensor stands for none."""
    if isinstance(value, tuple):
        return [shape for item in value for shape in shapes(item)]
    return [tuple(value.shape)] if value is not None and value.numel() else []


@pytest.mark.parametrize("name", CASES)
def test_shapes_are_those_of_the_cpu(name):
    expected = shapes(CASES[name]("cpu"))
    with virtual_cuda(backing="meta"):
        assert shapes(CASES[name]("cuda")) == expected


def test_what_is_printed():
    with virtual_cuda(backing="meta"):
        assert repr(torch.ones(2, 3, device="cuda")) == "tensor(..., device='cuda:0', size=(2, 3))"


def test_saved_and_loaded():
    file = io.BytesIO()
    with virtual_cuda(backing="meta"):
        torch.save(nn.Linear(8, 3).cuda().state_dict(), file)
        for place, device in ((None, "cuda:0"), ("cpu", "cpu")):
            file.seek(0)
            loaded = torch.load(file, map_location=place, weights_only=True)
            assert {str(t.device) for t in loaded.values()} == {device}
            assert shapes(tuple(loaded.values())) == [(3, 8), (3,)]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_step_trains_and_frees_what_it_took(kind):
    with virtual_cuda(backing="meta"):
        model = nn.Linear(1024, 1024, device="cuda")
        optimizer = getattr(torch.optim, kind)(model.parameters())
        held = []
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 1024, device="cuda")).sum().backward()
            optimizer.step()
            held.append(torch.cuda.memory_allocated())
        assert held[0] >= 2 * 4 * 1024 * 1024  # weights and gradients
        assert held[1] == held[2]


def test_a_healed_fault_goes_through_backward():
    with virtual_cuda(backing="meta") as session:
        model = nn.Linear(4, 3).cuda()
        loss = nn.CrossEntropyLoss(weight=torch.ones(3))
        loss(model(torch.randn(8, 4, device="cuda")), torch.randint(0, 3, (8,), device="cuda")).backward()
        assert model.weight.grad.shape == (3, 4)
        assert [seen.id for seen in session.machine.faults.seen.values()] == ["R101"]


def test_more_than_the_host_could_hold():
    with virtual_cuda(backing="meta", gpu="a100-80gb"):
        huge = torch.empty(15 << 30, device="cuda")
        assert torch.cuda.memory_allocated() == huge.numel() * 4

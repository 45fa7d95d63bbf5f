"""Heal mode: the program runs to its end with right results, and each fault is told once, with both lines."""

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, faults, tensors_in
from torch import nn
from torch.nn.utils import rnn

from torchport.inside.vcuda import virtual_cuda


def mask_on_the_host(device):
    scores = torch.randn(3, 3, device=device)
    mask = torch.ones(3, 3)  # BORN
    return scores * mask  # MEET


def mask_made_in_another_function(device):
    scores = torch.randn(3, 3, device=device)
    mask = _causal(3)
    return scores + mask  # MEET


def _causal(size):
    return torch.full((size, size), -1.0).triu(1)  # BORN


def accuracy(device):
    labels = torch.tensor([0, 1])  # BORN
    logits = torch.randn(2, 3, device=device)
    return (logits.argmax(1) == labels).float().mean()  # MEET


def target_of_a_loss(device):
    target = torch.tensor([0, 1])  # BORN
    logits = torch.randn(2, 3, device=device)
    return F.cross_entropy(logits, target)  # MEET


def input_of_a_module(device):
    model = nn.Linear(3, 2).to(device)
    x = torch.randn(4, 3)  # BORN
    return model(x)  # MEET


def module_left_behind(device):
    head = nn.Linear(3, 2)  # BORN
    x = torch.randn(4, 3).to(device)
    return head(x)  # MEET


def hidden_state(device):
    model = nn.GRU(2, 3).to(device)
    state = torch.zeros(1, 1, 3)  # BORN
    return model(torch.ones(4, 1, 2, device=device), state)  # MEET


def convolution_input(device):
    model = nn.Conv2d(1, 2, 3).to(device)
    image = torch.randn(2, 1, 8, 8)  # BORN
    return model(image)  # MEET


def concatenated(device):
    parts = torch.randn(2, 3, device=device)
    extra = torch.zeros(1, 3)  # BORN
    return torch.cat([parts, extra])  # MEET


def embedding_index(device):
    table = nn.Embedding(4, 3).to(device)
    tokens = torch.tensor([[0, 1]])  # BORN
    return table(tokens)  # MEET


def index_of_a_host_table(device):
    table = torch.randn(4, 3)
    rows = torch.tensor([1, 2], device=device)  # BORN
    return table[rows]  # MEET


def accumulated_on_the_host(device):
    total = torch.zeros(3)  # BORN
    total += torch.ones(3, device=device)  # MEET
    return total


def masked_fill_mask(device):
    scores = torch.randn(3, device=device)
    hidden = torch.tensor([True, False, True])  # BORN
    return scores.masked_fill(hidden, 0.0)  # MEET


def moved_to_the_wrong_gpu(device):
    scores = torch.randn(3, device=device)
    weight = torch.ones(3)  # BORN
    weight = weight.to(OTHER if device == CUDA else device)
    return scores * weight  # MEET


def lengths_on_the_gpu(device):
    lengths = torch.tensor([3, 2], device=device)  # BORN
    batch = torch.ones(3, 2, 4, device=device)
    return rnn.pack_padded_sequence(batch, lengths).data  # MEET


def to_numpy(device):
    loss = torch.randn(3, device=device)  # BORN
    return torch.from_numpy(loss.numpy()) * 2  # MEET


def as_array(device):
    loss = torch.randn(3, device=device)  # BORN
    return torch.from_numpy(np.asarray(loss)) * 2  # MEET


def generator_of_the_host(device):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(3, generator=generator, device=device)  # MEET


def gradient_from_the_host(device):
    parameter = nn.Parameter(torch.ones(3, device=device))
    gradient = torch.ones(3)  # BORN
    parameter.grad = gradient  # MEET
    return parameter.grad


def pinned_on_the_gpu(device):
    batch = torch.ones(3, device=device)  # BORN
    return batch.pin_memory() if device == CUDA else batch  # MEET


def assigned_through_an_index(device):
    memory = torch.zeros(4, device=device)
    fresh = torch.ones(2)  # BORN
    memory[torch.tensor([0, 2], device=device)] = fresh  # MEET
    return memory


# function, id of the finding, name of the tensor that is on the wrong device
TABLE = (
    (mask_on_the_host, "R101", "mask"),
    (mask_made_in_another_function, "R101", "mask"),
    (accuracy, "R101", "labels"),
    (target_of_a_loss, "R101", "target"),
    (input_of_a_module, "R101", "x"),
    (module_left_behind, "R101", "head.bias"),
    (hidden_state, "R101", "state"),
    (convolution_input, "R101", "image"),
    (concatenated, "R101", "extra"),
    (embedding_index, "R101", "tokens"),
    (index_of_a_host_table, "R103", "rows"),
    (accumulated_on_the_host, "R101", "total"),
    (masked_fill_mask, "R101", "hidden"),
    (moved_to_the_wrong_gpu, "R101", "weight"),
    (lengths_on_the_gpu, "R104", "lengths"),
    (to_numpy, "R102", "loss"),
    (as_array, "R102", "loss"),
    (generator_of_the_host, "R105", None),
    (gradient_from_the_host, "R108", "gradient"),
    (pinned_on_the_gpu, "R111", "batch"),
    (assigned_through_an_index, "R101", "fresh"),
)


def line_of(marker, *functions):
    """Number of the line that ends in ``# marker``."""
    for function in functions:
        source, first = inspect.getsourcelines(function)
        for number, text in enumerate(source, first):
            if text.rstrip().endswith(f"# {marker}"):
                return number
    return None


def told(session):
    return [finding for finding in session.findings if finding.id.startswith("R1")]


def offender(finding):
    return finding.fields["tensors"][finding.fields["offender"]]


def on_the_cpu(function):
    torch.manual_seed(0)
    return function("cpu")


@pytest.mark.parametrize(("function", "id", "name"), TABLE, ids=[row[0].__name__ for row in TABLE])
def test_one_finding_with_both_lines(function, id, name, healing):
    result = function(CUDA)
    found = told(healing)
    assert [finding.id for finding in found] == [id], faults(healing)
    (finding,) = found
    assert finding.count == 1
    assert finding.severity == "error"
    assert finding.fields["healed"] is True
    assert finding.place[1] == line_of("MEET", function)
    assert healing.machine.places.path(finding.place) == "tests/inside/rules/test_heal.py"
    if name is not None:
        assert offender(finding)["name"] == name
        assert offender(finding)["born"][1] == line_of("BORN", function, _causal)
    assert all(torch.isfinite(t).all() for t in tensors_in(result))


@pytest.mark.parametrize("function", [row[0] for row in TABLE], ids=[row[0].__name__ for row in TABLE])
def test_the_result_is_that_of_the_cpu(function):
    expected = list(tensors_in(on_the_cpu(function)))
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=False):
        torch.manual_seed(0)
        result = [t.cpu() for t in tensors_in(function(CUDA))]
    assert len(result) == len(expected)
    for got, wanted in zip(result, expected, strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("function", [row[0] for row in TABLE], ids=[row[0].__name__ for row in TABLE])
def test_the_finding_quotes_what_strict_mode_raises(function):
    with (
        virtual_cuda(gpus=2, gpu="a100-80gb", strict=True),
        pytest.raises((RuntimeError, TypeError)) as raised,
    ):
        function(CUDA)
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=False) as session:
        function(CUDA)
    said = told(session)[0].fields["cuda_says"]
    assert str(raised.value) in said
    assert said.startswith(type(raised.value).__name__)


def test_repeats_at_one_place_are_counted(healing):
    scores = torch.randn(3, device=CUDA)
    for _ in range(5):
        scores = scores * torch.ones(3)
    (finding,) = told(healing)
    assert finding.count == 5


def test_every_fault_shows_in_one_run(healing):
    model = nn.Linear(3, 2, device=CUDA)
    loss = F.cross_entropy(model(torch.randn(4, 3)), torch.tensor([0, 1, 0, 1]))
    loss.backward()
    loss.detach().numpy()
    assert [finding.id for finding in told(healing)] == ["R101", "R101", "R102"]
    assert str(model.weight.grad.device) == CUDA


def trained(device):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_healed_run_has_the_losses_of_the_cpu():
    expected = on_the_cpu(trained)
    with virtual_cuda(gpus=1, gpu="a100-80gb", strict=False) as session:
        torch.manual_seed(0)
        assert trained(CUDA) == expected
        assert [(finding.id, finding.count) for finding in told(session)] == [("R101", 10), ("R101", 10)]


def test_a_module_left_behind_is_to_be_moved(healing):
    module_left_behind(CUDA)
    (finding,) = told(healing)
    assert finding.fields["remedy"]["kind"] == "module-to"


def test_a_module_left_behind_is_moved_once(healing):
    body, head = nn.Linear(3, 3).to(CUDA), nn.Linear(3, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        head(body(torch.ones(4, 3, device=CUDA))).sum().backward()
        optimizer.step()
    assert len(told(healing)) == 1
    assert {str(p.device) for p in head.parameters()} == {CUDA}


def test_an_invalid_gpu_is_read_as_the_current_one(healing):
    assert str(torch.ones(3, device="cuda:7").device) == CUDA
    (finding,) = told(healing)
    assert finding.id == "R106"
    assert "invalid device ordinal" in finding.fields["cuda_says"]


def test_where_a_tensor_was_last_moved(healing):
    weight = torch.ones(3)
    weight = weight.to(OTHER)  # MOVED
    torch.ones(3, device=CUDA) * weight
    (finding,) = told(healing)
    assert finding.fields["tensors"][1]["moved"][1] == line_of("MOVED", test_where_a_tensor_was_last_moved)

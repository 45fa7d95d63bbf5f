"""What is legal on CUDA stays legal: copies, files, pinned memory, and what a tensor says of itself."""

import contextlib
import copy
import gc
import io
import pickle

import pytest
import torch
from rule_cases import CUDA, OTHER, agree, faults
from rule_parts import gradients, mlp, r, train
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecations of torch


class Listed(nn.Module):
    """Parameters in lists and dictionaries, a buffer, and a tensor made on the way."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(2)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.randn(3))})
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        for weight, layer in zip(self.weights, self.layers, strict=True):
            x = layer(x * weight) * self.scale + torch.arange(3, device=x.device)
        return x + self.named["a"]


def rebuilt(copy_of):
    def snippet(device):
        model = Listed().to(device)
        other = copy_of(model)
        x = r(device, 2, 3)
        assert torch.equal(other(x), model(x))
        assert other.scale.data_ptr() != model.scale.data_ptr()
        return other(x), dict(other.state_dict()), gradients(other, other(x).sum())

    return snippet


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def resumed(device):
    model = mlp(device)
    optimizer = optim.Adam(model.parameters())
    train(device, model, optimizer)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu")
    again = mlp(device)
    again.load_state_dict(saved["model"])
    optimizer = optim.Adam(again.parameters())
    optimizer.load_state_dict(saved["optimizer"])
    return train(device, again, optimizer)


TABLE = {
    "deepcopy": rebuilt(copy.deepcopy),
    "pickle": rebuilt(lambda model: pickle.loads(pickle.dumps(model))),
    "save and load a module": rebuilt(through_a_file),
    "resume": resumed,
    "deepcopy of a leaf": lambda d: copy.deepcopy(r(d, 3).requires_grad_()),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)


def saved(device):
    file = io.BytesIO()
    torch.save({"w": torch.arange(3.0, device=device), "n": 1}, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, CUDA),
        ("cpu", "cpu"),
        ("cuda", CUDA),
        (OTHER, OTHER),
        (torch.device("cpu"), "cpu"),
        (torch.device("cuda", 1), OTHER),
        ({CUDA: OTHER}, OTHER),
        ({CUDA: "cpu"}, "cpu"),
        ({OTHER: "cpu"}, CUDA),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.cuda(1), OTHER),
        (lambda storage, location: None, CUDA),
    ],
    ids=[
        "none",
        "cpu",
        "cuda",
        "cuda:1",
        "device cpu",
        "device cuda:1",
        "map",
        "map to cpu",
        "map of another",
        "function",
        "function to cuda:1",
        "function without answer",
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_map_location(map_location, expected, weights_only, session):
    value = torch.load(saved(CUDA), map_location=map_location, weights_only=weights_only)["w"]
    assert str(value.device) == expected
    assert value.tolist() == [0.0, 1.0, 2.0]
    assert faults(session) == []


def test_a_file_of_the_cpu_stays_there(session):
    assert str(torch.load(saved("cpu"))["w"].device) == "cpu"
    assert str(torch.load(saved("cpu"), map_location=CUDA)["w"].device) == CUDA


def test_views_keep_sharing_through_a_file(session):
    file = io.BytesIO()
    base = torch.zeros(4, device=CUDA)
    torch.save([base, base[:2]], file)
    file.seek(0)
    base, view = torch.load(file)
    view.fill_(1)
    assert base.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert str(view.device) == CUDA


def test_what_was_saved_stays_on_the_gpu_when_garbage_is_collected(session):
    model = Listed().to(CUDA)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    gc.collect()
    assert {str(t.device) for t in (*model.parameters(), *model.buffers())} == {CUDA}
    del model
    gc.collect()
    assert torch.cuda.memory_allocated() == 0


@pytest.mark.parametrize("assign", [True, False])
def test_load_state_dict(assign, session):
    model = Listed().to(CUDA)
    model.load_state_dict(Listed().state_dict(), assign=assign)
    assert {str(p.device) for p in model.parameters()} == {"cpu" if assign else CUDA}


def test_step_counters_stay_on_the_cpu(session):
    model = mlp(CUDA)
    optimizer = optim.Adam(model.parameters())
    train(CUDA, model, optimizer, 1)
    state = optimizer.state[model[0].weight]
    assert (str(state["step"].device), str(state["exp_avg"].device)) == ("cpu", CUDA)


def test_pinned_memory(session):
    data = TensorDataset(torch.randn(8, 3))
    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()
        assert str(batch.device) == "cpu"
        assert not batch.to(CUDA, non_blocking=True).is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.empty(3).is_pinned()


def test_what_a_tensor_says_of_itself(session):
    x = torch.ones(3, device=CUDA)
    assert (x.is_cuda, x.is_cpu, x.get_device(), x.device.index, x.type()) == (
        True,
        False,
        0,
        0,
        "torch.cuda.FloatTensor",
    )
    assert "device='cuda:0'" in repr(x)
    assert x.device == torch.device("cuda:0") != torch.device("cuda:1")
    assert x.storage().device == x.untyped_storage().device == x.device
    assert x.untyped_storage().is_cuda
    y = torch.ones(3)
    assert (y.is_cuda, y.get_device(), y.type()) == (False, -1, "torch.FloatTensor")
    assert "device" not in repr(y)
    assert torch.ones(3).cuda(1).get_device() == 1
    with torch.cuda.device(1):
        assert torch.ones(3, device="cuda").get_device() == 1
    assert hash(x) is not None


def test_current_device_follows_set_device(session):
    torch.cuda.set_device(1)
    with contextlib.ExitStack() as stack:
        stack.callback(torch.cuda.set_device, 0)
        assert torch.cuda.current_device() == 1
        assert torch.ones(3, device="cuda").get_device() == torch.ones(3).cuda().get_device() == 1
        assert nn.Linear(2, 2).cuda().weight.get_device() == 1

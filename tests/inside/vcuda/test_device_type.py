"""torch.device takes plain numbers in every build, and is itself again afterwards."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from torchport.inside.vcuda import virtual_cuda

SAME = {
    "number": lambda: torch.device(1),
    "keyword": lambda: torch.device(device=1),
    "text": lambda: torch.device("cuda:1"),
    "two arguments": lambda: torch.device("cuda", 1),
    "type and index": lambda: torch.device(type="cuda", index=1),
    "device": lambda: torch.device(torch.device("cuda", 1)),
    "pickled": lambda: pickle.loads(pickle.dumps(torch.device("cuda", 1))),
    "copied": lambda: copy.deepcopy(torch.device(1)),
    "of a tensor": lambda: torch.ones(1).to(1).device,
    "of a module": lambda: torch.nn.Linear(1, 1).to(1).weight.device,
    "of a factory": lambda: torch.ones(1, device=1).device,
}


@pytest.mark.parametrize("name", SAME)
def test_same(name):
    with virtual_cuda(gpus=2):
        device = SAME[name]()
        assert (device.type, device.index, type(device)) == ("cuda", 1, torch.device)


@pytest.mark.parametrize(("args", "error"), [(("foo",), RuntimeError), ((), TypeError), ((1.5,), TypeError)])
def test_torch_words_what_is_wrong(args, error):
    with pytest.raises(error) as plain:
        torch.device(*args)
    with virtual_cuda(), pytest.raises(error) as virtual:
        torch.device(*args)
    assert str(virtual.value) == str(plain.value)


def test_undone():
    before = torch.device.__new__
    with virtual_cuda():
        torch.device(0)
    assert torch.device.__new__ is before
    assert torch.device("cuda:1") == torch.device("cuda", 1)

"""nn.DataParallel and the copies between the cards of one process."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.cuda import comm, nccl

from torchport.inside.vcuda import virtual_cuda


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.fixture
def session():
    with virtual_cuda(gpus=2) as session:
        yield session


@pytest.fixture
def batch():
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("on_host", [False, True], ids=["batch on cuda:0", "batch on the host"])
def test_gradients_are_those_of_one_device(session, batch, on_host):
    with torch.device("cpu"):
        alone = network()
    alone(batch).pow(2).sum().backward()

    model = nn.DataParallel(network().cuda())
    seen = []
    model.module[0].register_forward_hook(lambda module, args, out: seen.append((module.weight.device, out.device)))
    out = model(batch if on_host else batch.cuda())
    out.pow(2).sum().backward()

    cards = [torch.device("cuda", 0), torch.device("cuda", 1)]
    assert out.device == cards[0]
    assert seen == [(card, card) for card in cards]
    for mine, theirs in zip(model.module.parameters(), alone.parameters(), strict=True):
        assert mine.grad.device == cards[0]
        assert torch.allclose(mine.grad.cpu(), theirs.grad)
    assert not session.findings


def test_a_module_left_on_the_host_is_moved(session, batch):
    model = nn.DataParallel(network())
    assert model(batch.cuda()).device == torch.device("cuda", 0)
    (seen,) = session.findings
    assert (seen.id, seen.fields["tensors"][0]["device"], seen.fields["extra"]["device"]) == ("R112", "cpu", "cuda:0")


def test_strict_says_what_torch_says(batch):
    with virtual_cuda(gpus=2, strict=True), pytest.raises(RuntimeError) as caught:
        nn.DataParallel(network())(batch.cuda())
    assert str(caught.value) == (
        "module must have its parameters and buffers on device cuda:0 (device_ids[0]) "
        "but found one of them on device: cpu"
    )


def test_buffers_outputs_and_inference(session, batch):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.drop = nn.Dropout()

        def forward(self, x):
            return {"y": self.drop(self.norm(x)), "parts": (x, x)}

    model = nn.DataParallel(Model().cuda())
    out = model(batch.cuda())
    assert out["y"].shape == (6, 4)
    assert model.module.norm.running_mean.device == torch.device("cuda", 0)
    with torch.no_grad():
        assert model.eval()(batch.cuda())["parts"][0].device == torch.device("cuda", 0)


def test_random_numbers_of_replicas_come_in_a_fixed_order(session, batch):
    model = nn.DataParallel(nn.Sequential(network(), nn.Dropout()).cuda())
    first, second = (
        torch.stack([(torch.manual_seed(3), model(batch.cuda()))[1].cpu() for _ in range(2)]) for _ in range(2)
    )
    assert torch.equal(first, second)
    assert torch.equal(first[0], first[1])


def test_replicas_that_wait_for_each_other_run_at_once(session, batch, monkeypatch):
    from torchport.inside.vcuda import dataparallel

    monkeypatch.setattr(dataparallel._Turn, "patience_s", 0.1)
    monkeypatch.setattr(dataparallel._Turn, "all_at_once", False)
    both = threading.Barrier(2, timeout=20)

    class Meets(nn.Linear):
        def forward(self, x):
            both.wait()
            return super().forward(x)

    assert nn.DataParallel(Meets(4, 2).cuda())(batch.cuda()).shape == (6, 2)


def devices(tensors):
    return [str(tensor.device) for tensor in tensors]


COPIES = {
    "scatter": (lambda x: devices(comm.scatter(x, [0, 1])), ["cuda:0", "cuda:1"]),
    "scatter by sizes": (lambda x: [len(t) for t in comm.scatter(x, [1, 0], [4, 2])], [4, 2]),
    "scatter out": (
        lambda x: comm.scatter(x, out=[torch.empty(2, 4).cuda(0), torch.empty(4, 4).cuda(1)])[1][3].equal(x[5].cuda(1)),
        True,
    ),
    "gather": (lambda x: str(comm.gather(comm.scatter(x, [0, 1]), destination=1).device), "cuda:1"),
    "gather to the host": (lambda x: comm.gather(comm.scatter(x, [0, 1]), destination="cpu").equal(x), True),
    "gather out": (lambda x: comm.gather(comm.scatter(x, [0, 1]), out=torch.empty(6, 4)).equal(x), True),
    "broadcast": (lambda x: devices(comm.broadcast(x.cuda(0), [0, 1])), ["cuda:0", "cuda:1"]),
    "broadcast_coalesced": (
        lambda x: [devices(ts) for ts in comm.broadcast_coalesced([x.cuda(), x[0].cuda()], [0, 1])],
        [["cuda:0"] * 2, ["cuda:1"] * 2],
    ),
    "reduce_add": (lambda x: comm.reduce_add([x.cuda(0), x.cuda(1)], 1).equal(2 * x.cuda(1)), True),
    "nccl.all_reduce": (lambda x: _nccl(x, nccl.all_reduce)[1].equal(2 * x.cuda(1)), True),
    "nccl.broadcast": (lambda x: _nccl(x, nccl.broadcast)[1].equal(x.cuda(1)), True),
    "scatter's gradient": (lambda x: _gradient(x), "cuda:0"),
}


def _nccl(x, call):
    pair = [x.cuda(0), x.cuda(1)]
    call(pair)
    return pair


def _gradient(x):
    leaf = x.cuda().requires_grad_()
    sum(part.sum().cpu() for part in comm.scatter(leaf, [0, 1])).backward()
    return str(leaf.grad.device)


@pytest.mark.parametrize("name", COPIES)
def test_copies(name, session, batch):
    call, expected = COPIES[name]
    assert call(batch) == expected


REFUSED = {
    "gather of nothing": (lambda x: comm.gather([]), "Expected at least one tensor to gather from"),
    "gather from the host": (
        lambda x: comm.gather([x, x]),
        "Expected all input tensors to be CUDA tensors, but tensor at index 0 is not",
    ),
    "scatter to nowhere": (lambda x: comm.scatter(x, []), "Expected at least one device to scatter to"),
    "unequal lists": (
        lambda x: comm.scatter(x, [0, 1], [6]),
        "Expected devices and chunk_sizes to be of same length, but got len(devices) = 2 and len(chunk_sizes) = 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, session, batch):
    call, text = REFUSED[name]
    with pytest.raises(RuntimeError) as caught:
        call(batch)
    assert str(caught.value) == text


def test_shapes_only(batch):
    with virtual_cuda(gpus=2, backing="meta"):
        model = nn.DataParallel(network().cuda())
        model(batch.cuda()).sum().backward()
        assert model.module[0].weight.grad.device == torch.device("cuda", 0)

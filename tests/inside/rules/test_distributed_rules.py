"""Rules 69-79, 81 and 82: data parallel and distributed, with one process unless the rule needs two."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from rule_cases import CUDA, OTHER, Legal, Refused, ones
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

pytestmark = [
    pytest.mark.filterwarnings("ignore:barrier", "ignore:No device id is provided"),  # it would like one
    pytest.mark.filterwarnings("ignore:.torch.cpu.amp.autocast:FutureWarning"),  # torch 2.4's own, in checkpoint
]

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def nccl(session, tmp_path):
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        yield session
    finally:
        dist.destroy_process_group()


class TwoBranches(nn.Module):
    """Leaves one of its layers out of the loss."""

    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.used(x)


class Checkpointed(nn.Module):
    """Looked through for unused parameters and checkpointed reentrantly: its parameters are ready twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=True)


def two_steps(model, **options):
    model = DistributedDataParallel(model.to(CUDA), device_ids=[0], **options)
    for _ in range(2):
        model(ones(1, 2, device=CUDA, requires_grad=True)).sum().backward()


def two_types():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].to(CUDA)
    return model


def frozen():
    return nn.Linear(2, 2).to(CUDA).requires_grad_(False)


DATA_PARALLEL = (
    "module must have its parameters and buffers on device {} (device_ids[0]) but found one of them on device: {}"
)

ALONE = (
    Refused(
        69,
        "DataParallel, cpu module",
        lambda cuda: nn.DataParallel(nn.Linear(2, 2), [0, 1])(ones(4, 2)),
        DATA_PARALLEL.format("cuda:0", "cpu"),
    ),
    Refused(
        69,
        "DataParallel, module on the other GPU",
        lambda cuda: nn.DataParallel(nn.Linear(2, 2, device=OTHER), [0, 1])(ones(4, 2)),
        DATA_PARALLEL.format("cuda:0", "cuda:1"),
    ),
    Refused(
        77,
        "no group",
        lambda cuda: dist.all_reduce(ones(1, device=cuda)),
        "Default process group has not been initialized, please make sure to call init_process_group.",
        ValueError,
    ),
    Legal(69, "DataParallel", lambda cuda: nn.DataParallel(nn.Linear(2, 2, device=cuda), [0, 1])(ones(4, 2))),
    Legal(
        69,
        "DataParallel with one GPU",
        lambda cuda: nn.DataParallel(nn.Linear(2, 2, device=cuda), [0])(ones(4, 2)),
    ),
)

IN_A_GROUP = (
    Refused(
        70,
        "two device ids",
        lambda cuda: DistributedDataParallel(nn.Linear(2, 2).to(cuda), device_ids=[0, 1]),
        "device_ids can only be None or contain a single element.",
        ValueError,
    ),
    Refused(
        71,
        "cpu module",
        lambda cuda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0]),
        "DistributedDataParallel device_ids and output_device arguments only work with "
        "single-device/multiple-device "
        "GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters "
        "{device(type='cpu')}.",
        ValueError,
    ),
    Refused(
        72,
        "two types of device",
        lambda cuda: DistributedDataParallel(two_types()),
        "DistributedDataParallel's input module must be on the same type of devices, but input module "
        "parameters "
        "locate in {",
        ValueError,
        part=True,
    ),
    Refused(
        73,
        "nothing to train",
        lambda cuda: DistributedDataParallel(frozen(), device_ids=[0]),
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.",
    ),
    Refused(
        74,
        "SyncBatchNorm on the cpu",
        lambda cuda: DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.SyncBatchNorm(2))),
        "SyncBatchNorm layers only work with GPU modules",
        ValueError,
    ),
    Refused(
        75,
        "all_reduce of a cpu tensor",
        lambda cuda: dist.all_reduce(ones(1)),
        "No backend type associated with device type cpu",
    ),
    Refused(
        75,
        "broadcast of a cpu tensor",
        lambda cuda: dist.broadcast(ones(1), 0),
        "No backend type associated with device type cpu",
    ),
    Refused(
        75,
        "all_gather into cpu tensors",
        lambda cuda: dist.all_gather([ones(1)], ones(1)),
        "No backend type associated with device type cpu",
    ),
    Refused(
        77,
        "twice",
        lambda cuda: dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore()),
        "trying to initialize the default process group twice!",
        ValueError,
    ),
    Refused(
        78,
        "not contiguous",
        lambda cuda: dist.all_reduce(ones(2, 3, device=cuda).t()),
        "Tensors must be contiguous",
        ValueError,
    ),
    Refused(
        81,
        "unused parameters",
        lambda cuda: two_steps(TwoBranches()),
        "Expected to have finished reduction in the prior iteration before starting a new one. This error "
        "indicates that your module has parameters that were not used in producing loss.",
        part=True,
    ),
    Refused(
        82,
        "parameter used twice",
        lambda cuda: two_steps(Checkpointed(), find_unused_parameters=True),
        "Expected to mark a variable ready only once.",
        part=True,
    ),
    Legal(
        75,
        "collectives of GPU tensors",
        lambda cuda: [f(ones(1, device=cuda)) and None for f in (dist.all_reduce, lambda t: dist.broadcast(t, 0))],
    ),
    Legal(75, "barrier", lambda cuda: dist.barrier()),
    Legal(75, "objects", lambda cuda: dist.broadcast_object_list([{"a": 1}], 0)),
    Legal(
        81,
        "unused parameters that are looked for",
        lambda cuda: two_steps(TwoBranches(), find_unused_parameters=True),
    ),
)


def split(table, kind):
    return [case for case in table if isinstance(case, kind)]


@pytest.mark.parametrize("case", split(ALONE, Refused), ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", split(ALONE, Legal), ids=str)
def test_legal(case, session):
    case.check(session)


@pytest.mark.parametrize("case", split(IN_A_GROUP, Refused), ids=str)
def test_refused_in_a_group(case, nccl):
    case.check()


@pytest.mark.parametrize("case", split(IN_A_GROUP, Legal), ids=str)
def test_legal_in_a_group(case, nccl):
    case.check(nccl)


def test_row_75_host_tensors_go_through_gloo(session, tmp_path):
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        for device in ("cpu", CUDA):
            value = ones(1, device=device)
            dist.all_reduce(value)
            assert value.item() == 1.0
    finally:
        dist.destroy_process_group()


def test_row_76_nccl_is_there(session):
    assert dist.is_nccl_available()
    assert dist.is_available()


def test_row_69_data_parallel_computes_what_the_module_does(session):
    module = nn.Linear(2, 2, device=CUDA)
    x = ones(4, 2, device=CUDA)
    parallel = nn.DataParallel(module, [0, 1])
    assert torch.equal(parallel(x), module(x))
    parallel(x).sum().backward()
    assert str(module.weight.grad.device) == CUDA


TWO_RANKS = """
import sys, torch, torch.distributed as dist
from torchport.inside.vcuda import virtual_cuda
rank = int(sys.argv[1])
with virtual_cuda(gpus=2, gpu="a100-80gb", strict=True):
    if sys.argv[3] == "own":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    value = torch.full((2,), float(rank + 1), device="cuda")
    dist.all_reduce(value)
    print(value.device, value.tolist())
"""


def two_ranks(tmp_path, mode):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TWO_RANKS, str(rank), f"{tmp_path}/store", mode],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        return [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.full
def test_row_79_two_ranks_on_one_gpu(tmp_path):
    for _, errors in two_ranks(tmp_path, "shared"):
        assert re.search(r"Duplicate GPU detected : rank [01] and rank [01] both on CUDA device", errors), errors
        assert "ncclInvalidUsage" in errors


@pytest.mark.full
def test_row_79_a_gpu_each(tmp_path):
    # The gloo of torch 2.8 prints that it is connected.
    outputs = [output.strip().split("\n")[-1] for output, _ in two_ranks(tmp_path, "own")]
    assert outputs == ["cuda:0 [3.0, 3.0]", "cuda:1 [3.0, 3.0]"]

"""Leaving a session undoes it: everything in torch and around is the object it was."""

import builtins
import copyreg
import importlib
import io
import os
import pickle
import subprocess
import sys
import threading
import types

import numpy
import pytest
import torch
import torch.distributed
import torch.multiprocessing
from rule_cases import CUDA, ones
from torch import nn

from torchport.inside.vcuda import virtual_cuda

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecated attributes of torch are looked at too

MODULES = (
    "torch",
    "torch._C",
    "torch._utils",
    "torch._tensor",
    "torch._tensor_str",
    "torch.accelerator",
    "torch.amp",
    "torch.amp.autocast_mode",
    "torch.amp.grad_scaler",
    "torch.autograd",
    "torch.autograd.graph",
    "torch.backends",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.cuda",
    "torch.cuda._utils",
    "torch.cuda.amp",
    "torch.cuda.graphs",
    "torch.cuda.memory",
    "torch.cuda.nvtx",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.distributed.rendezvous",
    "torch.fft",
    "torch.func",
    "torch.jit",
    "torch.linalg",
    "torch.multiprocessing",
    "torch.multiprocessing.reductions",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.modules.module",
    "torch.nn.parallel",
    "torch.nn.parallel.comm",
    "torch.nn.parallel.data_parallel",
    "torch.nn.parallel.distributed",
    "torch.nn.parallel.parallel_apply",
    "torch.nn.parallel.scatter_gather",
    "torch.nn.utils.rnn",
    "torch.nn.utils.clip_grad",
    "torch.optim",
    "torch.optim.optimizer",
    "torch.optim.adam",
    "torch.overrides",
    "torch.profiler",
    "torch.random",
    "torch.serialization",
    "torch.sparse",
    "torch.special",
    "torch.storage",
    "torch.utils._device",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.utils.data.dataloader",
    "torch.utils.data._utils.pin_memory",
    "torch.utils.data._utils.worker",
    "torch.utils._foreach_utils",
    "torch.version",
    "torch._dynamo",
    "torch.compiler",
)

CLASSES = (
    torch.Tensor,
    torch._C.TensorBase,
    torch.nn.Parameter,
    torch.device,
    torch.Generator,
    torch.UntypedStorage,
    torch.TypedStorage,
    torch.nn.Module,
    torch.optim.Optimizer,
    torch.optim.Adam,
    torch.optim.SGD,
    torch.autocast,
    torch.amp.GradScaler,
    torch.cuda.Event,
    torch.cuda.Stream,
    torch.cuda.device,
    torch.nn.DataParallel,
    torch.nn.parallel.DistributedDataParallel,
    torch.utils.data.DataLoader,
    torch.autograd.Function,
    threading.Thread,
    threading.Event,
    subprocess.Popen,
    pickle.Pickler,
    io.BytesIO,
)


def surroundings():
    """Every attribute of the modules and classes, and the registries that are not attributes."""
    seen = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        seen.update(_attributes(name, vars(module)))
    for other in (os, sys, threading, builtins, numpy, subprocess, pickle):
        seen.update(_attributes(other.__name__, vars(other)))
    for cls in CLASSES:
        seen.update(_attributes(f"{cls.__module__}.{cls.__qualname__}", vars(cls)))
    seen["serialization registry"] = tuple(torch.serialization._package_registry)
    seen["copyreg"] = tuple(sorted((repr(key), id(value)) for key, value in copyreg.dispatch_table.items()))
    seen["environment"] = tuple(sorted(os.environ.items()))
    seen["default device"] = torch.ones(1).device
    seen["default dtype"] = torch.get_default_dtype()
    seen["deterministic"] = torch.are_deterministic_algorithms_enabled()
    seen["meta path"] = tuple(map(id, sys.meta_path))
    seen["excepthook"] = id(sys.excepthook)
    return seen


def _attributes(owner, attributes):
    plain = (bool, int, float, str, bytes, type(None), tuple)
    return {
        f"{owner}.{name}": repr(value) if isinstance(value, plain) else id(value)
        for name, value in list(attributes.items())
        if not isinstance(value, types.ModuleType) and name not in ("__warningregistry__", "last_value", "exc_info")
    }


def differences(before, after):
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name, "absent") != after.get(name, "absent")
    )


def use(device):
    """Touches as many of the changed things as fits in a few lines."""
    model = nn.Linear(3, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(ones(4, 3, device=device)).float().pow(2).mean()
    torch.amp.GradScaler("cuda").scale(loss).backward()
    optimizer.step()
    torch.cuda.synchronize()
    torch.cuda.manual_seed_all(0)
    torch.Generator(device).manual_seed(1)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    torch.load(file, map_location=device)
    thread = threading.Thread(target=lambda: ones(3, device=device) + 1)
    thread.start()
    thread.join()
    torch.cuda.memory_summary()
    return loss.item()


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Lazy imports and caches of torch happen before anything is compared."""
    with virtual_cuda(gpus=1, gpu="a100-80gb"):
        use(CUDA)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("backing", ["cpu", "meta"])
def test_all_is_as_before(strict, backing):
    before = surroundings()
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=strict, backing=backing):
        ones(3, device=CUDA) + 1
    assert differences(before, surroundings()) == []


def test_all_is_as_before_after_use():
    before = surroundings()
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=True):
        use(CUDA)
    assert differences(before, surroundings()) == []


def test_all_is_as_before_after_an_exception():
    before = surroundings()
    with pytest.raises(ZeroDivisionError), virtual_cuda(gpus=2, gpu="a100-80gb"):
        ones(3, device=CUDA)
        raise ZeroDivisionError
    with pytest.raises(RuntimeError), virtual_cuda(gpus=2, gpu="a100-80gb", strict=True):
        ones(3, device=CUDA) + ones(3)
    assert differences(before, surroundings()) == []


def test_an_unknown_card_leaves_nothing_behind():
    before = surroundings()
    with pytest.raises(Exception, match="nonesuch"), virtual_cuda(gpu="nonesuch-9000"):
        pass
    assert differences(before, surroundings()) == []


def test_it_can_be_entered_again():
    results = []
    for _ in range(3):
        with virtual_cuda(gpus=1, gpu="a100-80gb", strict=True) as session:
            torch.manual_seed(0)
            results.append(use(CUDA))
            assert session.findings == [] or all(f.severity != "error" for f in session.findings)
            assert torch.cuda.device_count() == 1
    assert len(set(results)) == 1


def test_after_leaving_there_is_no_cuda():
    available = torch.cuda.is_available()
    with virtual_cuda(gpus=1, gpu="a100-80gb"):
        assert torch.cuda.is_available()
        kept = ones(3, device=CUDA)
    assert torch.cuda.is_available() == available
    assert kept.device == torch.device("cpu")  # what is left of a virtual tensor is its memory on the host
    assert (kept + ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_the_random_stream_goes_on_where_it_was():
    torch.manual_seed(0)
    expected = torch.rand(2, 3)
    torch.manual_seed(0)
    first = torch.rand(3)
    with virtual_cuda(gpus=1, gpu="a100-80gb"):
        pass
    assert torch.equal(torch.stack([first, torch.rand(3)]), expected)


def test_other_threads_are_left_alone_afterwards():
    with virtual_cuda(gpus=1, gpu="a100-80gb", strict=True):
        pass
    found = []
    thread = threading.Thread(target=lambda: found.append(ones(3).device))
    thread.start()
    thread.join()
    assert found == [torch.device("cpu")]

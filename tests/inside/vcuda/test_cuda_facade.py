"""torch.cuda over a virtual card: devices, errors, versions; no function says "not compiled with CUDA"."""

from __future__ import annotations

import os
import re
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from torchport.inside.vcuda.builds import TORCH, build_of
from torchport.inside.vcuda.cuda import check_index, ensure_initialized
from torchport.inside.vcuda.cuda_errors import NotSimulated, cuda_error_text
from torchport.inside.vcuda.machine import Machine

cuda: Any = torch.cuda
SUFFIX = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
)
DSA = "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
HELP = "\nGPU device may be out of range, do you have enough GPUs?"


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ((2, 4), f"CUDA error: invalid device ordinal{SUFFIX}{DSA}"),
        ((2, 8), f"CUDA error: invalid device ordinal{SUFFIX}{DSA}"),
        ((2, 9), f"CUDA error: invalid device ordinal{HELP}{SUFFIX}{DSA}"),
        ((2, 12), f"CUDA error: invalid device ordinal{HELP}{SUFFIX}{DSA}"),
        (
            (2, 13),
            f"CUDA error: invalid device ordinal{HELP}"
            f"\nFor more detailed error information, run with CUDA_LOG_FILE=stderr{DSA}",
        ),
        ((2, 14), f"CUDA error: invalid device ordinal{HELP}{DSA}"),
    ],
)
def test_text_of_an_invalid_ordinal(version: tuple[int, int], text: str) -> None:
    assert cuda_error_text("invalid device ordinal", "cudaErrorInvalidDevice", version) == text


def test_text_of_an_error_that_comes_late() -> None:
    text = cuda_error_text("device-side assert triggered", "cudaErrorAssert", (2, 14))
    assert text.startswith("CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in https://")
    assert text.endswith(SUFFIX + DSA)


def test_nothing_initialises_before_it_must(machine: Machine) -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    torch.cuda.manual_seed_all(3)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == 0
    assert not torch.cuda.is_initialized()
    assert torch.cuda.current_device() == 0
    assert torch.cuda.is_initialized() and machine.initialized


ANSWERS = [
    ("get_device_name()", "NVIDIA A100-SXM4-80GB"),
    ("get_device_name('cuda:1')", "NVIDIA A100-SXM4-80GB"),
    ("get_device_capability(torch.device('cuda', 1))", (8, 0)),
    ("get_device_properties(0).total_memory", 81152 << 20),
    ("get_device_properties(0).multi_processor_count", 108),
    ("can_device_access_peer(0, 1)", True),
    ("can_device_access_peer(1, 1)", False),
    ("is_bf16_supported()", True),
    ("current_device()", 0),
    ("get_allocator_backend()", "native"),
]


@pytest.mark.parametrize(("call", "answer"), ANSWERS)
def test_answers(machine: Machine, call: str, answer: Any) -> None:
    assert eval(f"torch.cuda.{call}") == answer


ERRORS = [
    ("get_device_properties(2)", AssertionError, "Invalid device id"),
    ("get_device_name(7)", AssertionError, "Invalid device id"),
    ("get_device_capability(-3)", AssertionError, "Invalid device id"),
    ("can_device_access_peer(0, 2)", AssertionError, "Invalid peer device id"),
    ("set_device('cpu')", ValueError, "Expected a cuda device, but got: cpu"),
    ("get_device_name('cpu')", ValueError, "Expected a cuda device, but got: cpu"),
    ("set_device('cuda0')", RuntimeError, "Invalid device string: 'cuda0'"),
    ("set_device(2)", RuntimeError, "CUDA error: invalid device ordinal"),
    ("device(2).__enter__()", RuntimeError, "CUDA error: invalid device ordinal"),
    ("Stream(device=2)", RuntimeError, "CUDA error: invalid device ordinal"),
    ("synchronize(2)", RuntimeError, "CUDA error: invalid device ordinal"),
]
if TORCH >= (2, 8):
    ERRORS.append(("current_stream(2)", RuntimeError, "Device index value 2 is out of index range [0, 2)"))


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors(machine: Machine, call: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        eval(f"torch.cuda.{call}")
    assert str(caught.value).startswith(text)


def test_class_of_cuda_errors(machine: Machine) -> None:
    with pytest.raises(getattr(torch, "AcceleratorError", RuntimeError)):
        check_index(machine, 5)


def test_current_device(machine: Machine) -> None:
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        with torch.cuda.device(-1), torch.cuda.device(None):
            assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:1")
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
    thread.start()
    thread.join()
    assert (torch.cuda.current_device(), seen) == (1, [0])


def test_a_forked_child_cannot_use_cuda(machine: Machine) -> None:
    ensure_initialized(machine)
    machine.forked = True
    assert not torch.cuda.is_initialized()
    torch.manual_seed(0)  # torch leaves the card alone there
    text = (
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
        "you must use the 'spawn' start method"
    )
    for call in (
        torch.cuda.init,
        torch.cuda.current_device,
        torch.cuda.synchronize,
        torch.cuda.Stream,
        lambda: ensure_initialized(machine),
        lambda: check_index(machine, 0),
        lambda: torch.cuda.get_rng_state(),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value) == text


@pytest.mark.parametrize(
    ("mask", "seen"),
    [
        (None, (0, 1, 2, 3)),
        ("0,1", (0, 1)),
        ("3", (3,)),
        ("2,0", (2, 0)),
        ("", ()),
        ("-1", ()),
        ("0,9,1", (0,)),
        ("1,-1,2", (1,)),
        ("1,1", ()),
        ("MIG-0", ()),
    ],
)
def test_visible_devices(facade: Any, monkeypatch: pytest.MonkeyPatch, mask: str | None, seen: tuple[int, ...]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with facade(gpus=4) as machine:
        if mask is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
        assert torch.cuda.is_available() is bool(seen)
        assert machine.visible == seen
        if not seen:
            with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
                torch.cuda.init()
            return
        torch.cuda.init()
        assert torch.cuda.device_count() == len(seen)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
        assert torch.cuda.device_count() == len(seen)  # too late


def test_visible_by_uuid(facade: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with facade(gpus=2) as machine:
        uuid = cuda._raw_device_uuid_nvml()[1]
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", uuid)
        assert torch.cuda.device_count() == 1
        assert torch.cuda.is_available()
        assert machine.visible == (1,)


def test_properties_print_as_in_this_version(machine: Machine) -> None:
    shown = repr(torch.cuda.get_device_properties(1))
    assert shown.startswith(
        "_CudaDeviceProperties(name='NVIDIA A100-SXM4-80GB', major=8, minor=0, total_memory=81152MB, "
        "multi_processor_count=108"
    )
    assert ("pci_bus_id=2" in shown) == (TORCH >= (2, 8))
    assert shown.endswith("L2_cache_size=40MB)" if TORCH >= (2, 5) else "count=108)")


@pytest.mark.parametrize(("gpu", "warns"), [("a100", False), ("k80", True), ("v100", TORCH >= (2, 11))])
def test_a_card_without_kernels_in_the_wheel_is_warned_of(facade: Any, gpu: str, warns: bool) -> None:
    with facade(gpu=gpu), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.init()
    assert bool(caught) is warns
    if warns and TORCH >= (2, 13):
        assert "which is of compute capability (CC)" in str(caught[0].message)


def test_versions(machine: Machine) -> None:
    build = build_of()
    assert torch.version.cuda == build.cuda
    assert torch.backends.cuda.is_built()
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.version() == build.cudnn
    assert torch.cuda.nccl.version() == build.nccl
    assert torch.cuda.get_arch_list() == build.archs.split()
    assert "-gencode compute=compute_90,code=sm_90" in torch.cuda.get_gencode_flags()


@pytest.mark.parametrize(("version", "cuda_version"), [((2, 4), "12.1"), ((2, 8), "12.8"), ((2, 99), "13.2")])
def test_the_build_goes_with_the_version(version: tuple[int, int], cuda_version: str) -> None:
    assert build_of(version).cuda == cuda_version


# Arguments for what cannot be called without any; names of modules and values are skipped by what they are.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "CudaError": (0,),
    "ExternalStream": (0x1000,),
    "StreamContext": (None,),
    "caching_allocator_alloc": (1024,),
    "can_device_access_peer": (0, 1),
    "check_error": (0,),
    "device": (0,),
    "export_dot": ("graph.dot",),
    "export_graph_data": ("graph.pickle",),
    "get_device_properties": (0,),
    "get_stream_from_external": (0x1000, 0),
    "make_graphed_callables": (len, ()),
    "manual_seed": (1,),
    "manual_seed_all": (1,),
    "set_device": (0,),
    "set_per_process_memory_fraction": (0.5,),
    "set_rng_state": (torch.get_rng_state(),),
    "set_rng_state_all": ([torch.get_rng_state()],),
    "set_stream": (None,),
    "set_sync_debug_mode": (0,),
    "stream": (None,),
}
# What is refused on purpose, or needs a package or tensors.
REFUSED: dict[str, type[BaseException]] = {
    "CUDAGraph": NotSimulated,
    "GreenContext": NotSimulated,
    "graph": NotSimulated,
    "CUDAPluggableAllocator": TypeError,
    "change_current_allocator": TypeError,
    "caching_allocator_delete": TypeError,
    "device_of": TypeError,
    "use_mem_pool": TypeError,
    "clock_rate": ModuleNotFoundError,
    "device_memory_used": ModuleNotFoundError,
    "memory_usage": ModuleNotFoundError,
    "power_draw": ModuleNotFoundError,
    "temperature": ModuleNotFoundError,
    "utilization": ModuleNotFoundError,
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_every_public_function_answers(machine: Machine) -> None:
    called = 0
    for name in torch.cuda.__all__:
        if name.endswith(("Tensor", "Storage")):  # need tensors on the card
            continue
        value = getattr(torch.cuda, name)
        if not callable(value):
            continue
        called += 1
        if name in REFUSED and not (REFUSED[name] is ModuleNotFoundError and cuda._HAS_PYNVML):
            with pytest.raises(REFUSED[name]):
                value()
        else:
            value(*ARGUMENTS.get(name, ()))
    assert called > 70


# In torch._C of a CUDA build or of every build: for C++ extensions, inductor's graph trees, other back ends.
LEFT = re.compile(
    "_cuda_(CUDAAllocator|getCheckpointState|setCheckpointPoolState|checkPoolLiveAllocations|lock_mutex"
    "|unlock_mutex|getHipblasltVersion|annotateMemory|memoryMetadataSupported"
    "|tunableop_get_rotation_buffer_size)|_accelerator_(hooks_|getAllocatorSettings|setAllocatorSettings)"
)


def test_every_function_below_torch_cuda_is_replaced(facade: Any) -> None:
    stub = (Path(torch.__file__).parent / "_C/__init__.pyi").read_text(encoding="utf-8")
    names = set(re.findall(r"^def (_(?:cuda|accelerator)_\w+)", stub, re.M))
    names |= {name for name in vars(torch._C) if name.startswith("_cuda_")}
    before = {name: getattr(torch._C, name, None) for name in names}
    with facade():
        untouched = {name for name, value in before.items() if getattr(torch._C, name, None) is value}
    assert {name for name in untouched if not LEFT.match(name)} == set()


def test_the_environment_is_left_alone(facade: Any) -> None:
    before = dict(os.environ)
    with facade():
        torch.cuda.init()
    assert dict(os.environ) == before

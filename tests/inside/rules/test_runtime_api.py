"""Rules 49-68: errors of the CUDA runtime, serialization and the torch.cuda helpers."""

import io
import os
import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, Legal, Refused, exact_same, ones, torch_at_least
from torch import nn
from torch.utils.data import DataLoader, Dataset

from torchport.inside.vcuda import virtual_cuda

BAD_FORK = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    "'spawn' start "
    "method"
)


def float8_product(device):
    return torch._scaled_mm(
        ones(16, 16, device=device).to(torch.float8_e4m3fn),
        ones(16, 16, device=device).to(torch.float8_e4m3fn).t(),
        scale_a=ones((), device=device),
        scale_b=ones((), device=device),
    )


def fused_complex(device):
    parameter = nn.Parameter(ones(3, dtype=torch.complex64, device=device))
    parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam([parameter], fused=True).step()


def capturable_on_the_host(device):
    parameter = nn.Parameter(ones(3))
    parameter.grad = ones(3)
    torch.optim.Adam([parameter], capturable=True).step()


REFUSED = (
    Refused(49, "factory", lambda cuda: ones(3, device="cuda:5"), "CUDA error: invalid device ordinal", part=True),
    Refused(49, "to", lambda cuda: ones(3).to("cuda:2"), "CUDA error: invalid device ordinal", part=True),
    Refused(49, "cuda(n)", lambda cuda: ones(3).cuda(7), "CUDA error: invalid device ordinal", part=True),
    Refused(
        49,
        "module.to",
        lambda cuda: nn.Linear(2, 2).to("cuda:2"),
        "CUDA error: invalid device ordinal",
        part=True,
    ),
    Refused(
        49,
        "set_device",
        lambda cuda: torch.cuda.set_device(2),
        "CUDA error: invalid device ordinal",
        part=True,
    ),
    Refused(
        49,
        "synchronize",
        lambda cuda: torch.cuda.synchronize(2),
        "CUDA error: invalid device ordinal",
        part=True,
    ),
    Refused(
        51,
        "properties",
        lambda cuda: torch.cuda.get_device_properties(2),
        "Invalid device id",
        AssertionError,
    ),
    Refused(51, "name", lambda cuda: torch.cuda.get_device_name(2), "Invalid device id", AssertionError),
    Refused(
        51,
        "capability",
        lambda cuda: torch.cuda.get_device_capability(2),
        "Invalid device id",
        AssertionError,
    ),
    Refused(
        51,
        "peer",
        lambda cuda: torch.cuda.can_device_access_peer(0, 2),
        "Invalid peer device id",
        AssertionError,
    ),
    Refused(
        52,
        "current_stream",
        lambda cuda: torch.cuda.current_stream(2),
        "Device index value 2 is out of index range [0, 2)"
        if torch_at_least("2.8")
        else "device_index >= 0 && device_index < num_gpus INTERNAL ASSERT FAILED at ",
        part=True,
    ),
    Refused(58, "device string", lambda cuda: ones(3, device="cuda0"), "Invalid device string: 'cuda0'"),
    Refused(58, "device string in to", lambda cuda: ones(3).to("cuda0"), "Invalid device string: 'cuda0'"),
    Refused(
        58,
        "set_device of a cpu",
        lambda cuda: torch.cuda.set_device("cpu"),
        "Expected a cuda device, but got: cpu",
        ValueError,
    ),
    Refused(
        58,
        "device context of a cpu",
        lambda cuda: torch.cuda.synchronize("cpu"),
        "Expected a cuda device, but got: cpu",
        ValueError,
    ),
    Refused(
        60,
        "absurd size",
        lambda cuda: torch.empty(2**60, dtype=torch.uint8, device=cuda),
        "CUDA out of memory. Tried to allocate more than 1EB memory.",
        part=True,
    ),
    Refused(
        63,
        "integer matmul",
        lambda cuda: torch.ones(2, 2, device=cuda).long() @ ones(2, 2, device=cuda).long(),
        "\"addmm_cuda\" not implemented for 'Long'",
    ),
    Refused(
        63,
        "integer linear",
        lambda cuda: F.linear(*[ones(2, 2, device=cuda).long()] * 2),
        "\"addmm_cuda\" not implemented for 'Long'",
    ),
    Refused(
        65,
        "fused, complex",
        fused_complex,
        "`fused=True` requires all the params to be floating point Tensors of supported devices: [",
        part=True,
    ),
    Refused(65, "fused, the type is named", fused_complex, "but torch.complex64 and cuda", part=True, since="2.5"),
    Refused(
        65,
        "capturable on the host",
        capturable_on_the_host,
        "If capturable=True, params and state_steps must be on supported devices: [",
        AssertionError,
        part=True,
    ),
    # The kernel's own "found_inf must be a CUDA tensor." is never reached: its generated check comes first.
    Refused(
        66,
        "found_inf on the host",
        lambda cuda: torch._amp_foreach_non_finite_check_and_unscale_(
            [ones(3, device=cuda)], torch.zeros(1), ones(1, device=cuda)
        ),
        exact_same("found_inf", "cpu", CUDA, "wrapper_CUDA___amp_foreach_non_finite_check_and_unscale_"),
    ),
)

LEGAL = (
    Legal(49, "every GPU there is", lambda cuda: ones(3, device=cuda)),
    Legal(49, "last GPU", lambda cuda: ones(3, device="cuda:1"), device="cuda:1"),
    Legal(
        65,
        "fused Adam",
        lambda cuda: torch.optim.Adam(nn.Linear(2, 2, device=cuda).parameters(), fused=True) and None,
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", LEGAL, ids=str)
def test_legal(case, session):
    case.check(session)


def test_row_49_class_and_help(session):
    with pytest.raises(RuntimeError) as caught:
        ones(3, device="cuda:5")
    text = str(caught.value)
    if torch_at_least("2.9"):
        assert type(caught.value) is torch.AcceleratorError
        assert text.startswith(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
        )
    else:
        assert "For debugging consider passing CUDA_LAUNCH_BLOCKING=1" in text
    assert "TORCH_USE_CUDA_DSA" in text


def out_of_range_index(device):
    table = ones(4, 3, device=device)
    F.embedding(torch.tensor([7], device=device), table).sum().item()


def out_of_range_class(device):
    F.cross_entropy(ones(2, 3, device=device), torch.tensor([0, 3], device=device)).item()


@pytest.mark.parametrize("snippet", [out_of_range_index, out_of_range_class])
def test_row_62_device_side_assert_poisons_the_process(snippet, session):
    for attempt in (snippet, lambda device: ones(3, device=device).sum().item()):
        with pytest.raises(RuntimeError, match=r"^CUDA error: device-side assert triggered") as caught:
            attempt(CUDA)
        assert not isinstance(caught.value, IndexError)


def test_row_50_help_names_the_error(session):
    with pytest.raises(RuntimeError) as caught:
        out_of_range_index(CUDA)
    if torch_at_least("2.10"):
        assert "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/" in str(caught.value)


def in_forked_child(call):
    """What ``call`` raises in a forked child: its class and text, or "nothing"."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        text = "nothing"
        try:
            call()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


def test_row_53_fork_after_first_use(session):
    value = ones(3, device=CUDA)
    for call in (
        lambda: ones(3, device=CUDA),
        lambda: ones(3).cuda(),
        lambda: torch.cuda.synchronize(),
        lambda: torch.cuda.current_device(),
    ):
        assert in_forked_child(call) == f"RuntimeError: {BAD_FORK}"
    assert in_forked_child(lambda: ones(3) + 1) == "nothing"
    assert value.sum().item() == 3.0


def test_row_53_fork_before_first_use(session):
    assert torch.cuda.is_available()
    assert in_forked_child(lambda: ones(3, device=CUDA).sum()) == "nothing"


class OnTheGpu(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, number):
        return ones(3, device=CUDA)


def test_row_53_data_loader_worker(session):
    ones(3, device=CUDA)
    workers = iter(DataLoader(OnTheGpu(), num_workers=1, multiprocessing_context="fork"))
    with pytest.raises(RuntimeError, match=re.escape(BAD_FORK)):
        next(workers)
    workers._shutdown_workers()


def test_rows_54_and_55_outside_a_session_torch_is_what_it_was():
    with pytest.raises((AssertionError, RuntimeError)) as caught:
        ones(3, device="cuda")
    expected = "Found no NVIDIA driver on your system" if torch.version.cuda else "Torch not compiled with CUDA enabled"
    assert expected in str(caught.value)


# torch 2.4 and 2.5 announce that the default of weights_only will change.
OLD_DEFAULT = pytest.mark.filterwarnings("ignore:You are using `torch.load` with:FutureWarning")


def saved_on(device, gpus):
    file = io.BytesIO()
    with virtual_cuda(gpus=gpus, gpu="a100-80gb", strict=True):
        torch.save({"w": ones(3, device=device)}, file)
    file.seek(0)
    return file


@OLD_DEFAULT
def test_row_57_load_without_cuda():
    file = saved_on("cuda:0", 1)
    with pytest.raises(RuntimeError) as caught:
        torch.load(file)
    assert str(caught.value) == (
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
        "are running "
        "on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
        "storages to "
        "the CPU."
    )
    file.seek(0)
    assert torch.load(file, map_location="cpu")["w"].tolist() == [1.0, 1.0, 1.0]


@OLD_DEFAULT
def test_row_57_load_of_a_gpu_that_is_not_there():
    file = saved_on("cuda:3", 4)
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=True):
        with pytest.raises(RuntimeError) as caught:
            torch.load(file)
        assert str(caught.value) == (
            "Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 2. Please "
            "use "
            "torch.load with map_location to map your storages to an existing device."
        )
        file.seek(0)
        assert str(torch.load(file, map_location={"cuda:3": "cuda:1"})["w"].device) == "cuda:1"


def test_row_56_a_card_the_wheel_has_no_kernels_for():
    if not torch_at_least("2.11"):
        pytest.skip("wheels up to torch 2.10 had kernels for every card of the table")
    with virtual_cuda(gpus=1, gpu="v100-16gb", strict=True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.init()
        assert "sm_70" not in torch.cuda.get_arch_list()
    assert any("Found GPU0" in str(w.message) for w in caught), [str(w.message) for w in caught]


def test_row_64_what_the_card_cannot_do():
    with virtual_cuda(gpus=1, gpu="a100-80gb", strict=True), pytest.raises(RuntimeError) as caught:
        float8_product(CUDA)
    assert "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9" in str(
        caught.value
    )


def test_row_64_flash_attention_needs_ampere():
    with virtual_cuda(gpus=1, gpu="t4", strict=True):
        q = ones(1, 1, 8, 16, device=CUDA).half()
        with pytest.raises(RuntimeError, match=r"FlashAttention only supports Ampere GPUs or newer\."):
            torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)

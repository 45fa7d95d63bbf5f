"""Rules 35-37, 39, 41 and 47: generators, NumPy, pinned memory, and checks written by hand elsewhere."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, Legal, Refused, arange, exact_same, ones, zeros
from torch.utils.data import DataLoader

HOST = "cpu"


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def shuffle_under_default_device(device):
    with torch.device(device):
        next(iter(DataLoader(list(range(4)), shuffle=True)))


GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."

# Where the generated check of a CUDA kernel comes before the hand-written one, its words are what a user
# sees: grid_sampler_2d, searchsorted.Tensor, take, put_, index_copy_, multinomial.out and _linalg_solve_ex
# are ExactSame.
CASES = (
    Refused(35, "randn", lambda cuda: torch.randn(3, device=cuda, generator=torch.Generator()), GENERATOR),
    Refused(
        35,
        "rand of the CPU",
        lambda cuda: torch.rand(3, generator=torch.Generator(cuda)),
        "Expected a 'cpu' device type for generator but found 'cuda'",
    ),
    Refused(
        35,
        "randint",
        lambda cuda: torch.randint(3, (2,), device=cuda, generator=torch.Generator()),
        GENERATOR,
    ),
    Refused(35, "randperm", lambda cuda: torch.randperm(3, device=cuda, generator=torch.Generator()), GENERATOR),
    Refused(35, "normal_", lambda cuda: ones(3, device=cuda).normal_(generator=torch.Generator()), GENERATOR),
    Refused(35, "uniform_", lambda cuda: ones(3, device=cuda).uniform_(generator=torch.Generator()), GENERATOR),
    Refused(
        35,
        "multinomial",
        lambda cuda: ones(3, device=cuda).multinomial(1, generator=torch.Generator()),
        GENERATOR,
    ),
    Refused(
        35,
        "bernoulli",
        lambda cuda: torch.bernoulli(ones(3, device=cuda), generator=torch.Generator()),
        GENERATOR,
    ),
    Refused(35, "shuffle under a default device", shuffle_under_default_device, GENERATOR),
    Refused(36, "numpy", lambda cuda: ones(3, device=cuda).numpy(), NUMPY, TypeError),
    Refused(36, "np.asarray", lambda cuda: np.asarray(ones(3, device=cuda)), NUMPY, TypeError),
    Refused(36, "__array__", lambda cuda: ones(3, device=cuda).__array__(), NUMPY, TypeError),
    Refused(36, "np.sqrt", lambda cuda: np.sqrt(ones(3, device=cuda)), NUMPY, TypeError),
    Refused(
        36,
        "of the other GPU",
        lambda cuda: ones(3, device=OTHER).numpy(),
        NUMPY.replace(CUDA, OTHER),
        TypeError,
    ),
    Refused(
        36,
        "detached",
        lambda cuda: ones(3, device=cuda, requires_grad=True).detach().numpy(),
        NUMPY,
        TypeError,
    ),
    Refused(
        36,
        "requires grad",
        lambda cuda: ones(3, device=cuda, requires_grad=True).numpy(),
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    Refused(
        37,
        "pin_memory",
        lambda cuda: ones(3, device=cuda).pin_memory(),
        "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    ),
    Refused(
        37,
        "pin_memory of integers",
        lambda cuda: index(1, device=cuda).pin_memory(),
        "cannot pin 'torch.cuda.LongTensor' only dense CPU tensors can be pinned",
    ),
    Refused(
        39,
        "searchsorted",
        lambda cuda: torch.searchsorted(arange(3.0, device=cuda), ones(2)),
        exact_same("self", HOST, CUDA, "wrapper_CUDA_Tensor_searchsorted"),
    ),
    Refused(
        39,
        "searchsorted, cpu boundaries",
        lambda cuda: torch.searchsorted(arange(3.0), ones(2, device=cuda)),
        exact_same("self", CUDA, HOST, "wrapper_CUDA_Tensor_searchsorted"),
    ),
    Refused(
        39,
        "sorter",
        lambda cuda: torch.searchsorted(arange(3.0, device=cuda), ones(2, device=cuda), sorter=arange(3)),
        "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter "
        "tensor "
        "device type cpu and input value tensor device type cuda",
        part=True,
    ),
    Refused(
        41,
        "grid_sample",
        lambda cuda: F.grid_sample(ones(1, 1, 4, 4, device=cuda), zeros(1, 2, 2, 2), align_corners=False),
        exact_same("grid", HOST, CUDA, "wrapper_CUDA__grid_sampler_2d"),
    ),
    Refused(
        41,
        "stft",
        lambda cuda: torch.stft(ones(1, 100, device=cuda), 16, window=ones(16), return_complex=True),
        "stft input and window must be on the same device but got self on cuda:0 and window on cpu",
    ),
    Refused(
        41,
        "istft",
        lambda cuda: torch.istft(torch.ones(1, 9, 20, dtype=torch.complex64, device=cuda), 16, window=ones(16)),
        "istft input and window must be on the same device but got self on cuda:0 and window on cpu",
    ),
    Refused(
        41,
        "quantile",
        lambda cuda: torch.quantile(ones(4, device=cuda), ones(2) / 2),
        "quantile() q tensor must be on the same device as the input tensor",
    ),
    Refused(
        41,
        "meshgrid",
        lambda cuda: torch.meshgrid(arange(2, device=cuda), arange(2), indexing="ij"),
        "meshgrid expects all tensors to have the same device",
    ),
    Refused(
        41,
        "block_diag",
        lambda cuda: torch.block_diag(ones(2, 2, device=cuda), ones(2, 2)),
        "torch.block_diag: input tensors must all be on the same device. Input 0 is on device cuda:0 and "
        "input 1 "
        "is on device cpu",
    ),
    Refused(
        41,
        "gradient",
        lambda cuda: torch.gradient(ones(4, device=cuda), spacing=(arange(4.0),)),
        "torch.gradient expected each tensor to be on the same device, but got devices cuda:0 and cpu!",
    ),
    Refused(
        41,
        "weight_norm",
        lambda cuda: torch._weight_norm(ones(2, 3, device=cuda), ones(2, 1)),
        "weight_norm: expected v_in and g_in to be on the same device, but v_in is on cuda:0 and g_in is on cpu",
    ),
    Refused(
        41,
        "multi_dot",
        lambda cuda: torch.linalg.multi_dot([ones(2, 3, device=cuda), ones(3, 2), ones(2, 2)]),
        "multi_dot(): all tensors must be on the same device but tensor 0 is on cuda:0 and tensor 1 on cpu",
    ),
    Refused(
        41,
        "dot out",
        lambda cuda: torch.dot(*[ones(2, device=cuda)] * 2, out=ones(())),
        "dot: Expected the output and input tensors to be on the same device, but got the output tensor on "
        "cpu, "
        "the 'input' tensor on cuda:0, and the 'other' tensor on cuda:0",
    ),
    Refused(
        41,
        "tensordot out",
        lambda cuda: torch.tensordot(*[ones(2, 2, device=cuda)] * 2, dims=1, out=ones(2, 2)),
        "tensordot: Expected the output and input tensors to be on the same device, but got the output "
        "tensor on "
        "cpu, input tensor a on cuda:0, and input tensor b on cuda:0",
    ),
    Refused(
        41,
        "cholesky_solve",
        lambda cuda: torch.cholesky_solve(ones(2, 1), torch.eye(2, device=cuda)),
        "Expected b and A to be on the same device, but found b on cpu and A on cuda:0 instead.",
    ),
    Refused(
        41,
        "solve",
        lambda cuda: torch.linalg.solve(torch.eye(2, device=cuda), ones(2, 1)),
        exact_same("B", HOST, CUDA, "wrapper_CUDA__linalg_solve_ex"),
    ),
    Refused(
        41,
        "multinomial out",
        lambda cuda: torch.multinomial(ones(3, device=cuda), 1, out=index(0)),
        exact_same("self", CUDA, HOST, "wrapper_CUDA_out_multinomial_out"),
    ),
    Refused(
        41,
        "take_along_dim",
        lambda cuda: torch.take_along_dim(ones(2, 3, device=cuda), zeros(2, 1).long(), 1),
        "Expected tensor to have cuda:0 Device, but got tensor with cpu Device (while checking arguments for "
        "torch.take_along_dim():)",
    ),
    Refused(
        41,
        "tensor_split",
        lambda cuda: torch.tensor_split(ones(4), index(1, 2, device=cuda)),
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0",
    ),
    Refused(
        47,
        "set_",
        lambda cuda: ones(3).set_(ones(3, device=cuda)),
        'Attempted to set the storage of a tensor on device "cpu" to a storage on different device '
        '"cuda:0".  '
        "This is no longer allowed; the devices must match.",
    ),
    Refused(
        47,
        "set_ of a storage",
        lambda cuda: ones(3, device=cuda).set_(ones(3).untyped_storage()),
        'on different device "cpu".  This is no longer allowed; the devices must match.',
        part=True,
    ),
    Legal(35, "generator of the GPU", lambda cuda: torch.randn(3, device=cuda, generator=torch.Generator(cuda))),
    Legal(
        36,
        "numpy by force",
        lambda cuda: torch.from_numpy(ones(3, device=cuda).numpy(force=True)),
        device=HOST,
    ),
    Legal(
        36,
        "numpy by way of the CPU",
        lambda cuda: torch.from_numpy(ones(3, device=cuda).cpu().numpy()),
        device=HOST,
    ),
    Legal(41, "tensor_split of the GPU", lambda cuda: torch.tensor_split(ones(4, device=cuda), index(1, 2))),
)


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Refused)], ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case, Legal)], ids=str)
def test_legal(case, session):
    case.check(session)

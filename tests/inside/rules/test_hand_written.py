"""Rules 29-43, 47 and 84-86: the checks written by hand in ATen and the Python bindings."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, Legal, Refused, arange, exact_same, ones, two_devices, zeros
from torch import nn
from torch.nn.utils import rnn
from torch.utils.data import DataLoader

HOST = "cpu"


def index(*values, device=HOST):
    return torch.tensor(values, device=device)


def scalar(value=1.0, device=HOST):
    return torch.tensor(value, device=device)


def put(target, where, value):
    target[where] = value
    return target


def conv_types(input_type, kind, other_type, mkldnn=False):
    text = f"Input type (torch.{input_type}) and {kind} type (torch.{other_type}) should be the same"
    return text + (f" or input should be a MKLDNN tensor and {kind} is a dense tensor" if mkldnn else "")


def rnn_device(kind, on_input, on_other):
    return (
        f"Input and {kind} tensors are not at the same device, found input tensor at {on_input} and {kind} tensor at "
        f"{on_other}"
    )


def shuffle_under_default_device(device):
    with torch.device(device):
        next(iter(DataLoader(list(range(4)), shuffle=True)))


GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)
ON_SELF_OR_CPU = "indices should be either on cpu or on the same device as the indexed tensor ({})"
VALUE = "expected device cuda:0 but got device cpu for value tensor"
MASK = "expected self and mask to be on the same device, but got mask on {} and self on {}"

INDEXING = (
    Refused(29, "cpu[cuda index]", lambda cuda: ones(3)[index(1, device=cuda)], ON_SELF_OR_CPU.format("cpu")),
    Refused(29, "cpu[cuda mask]", lambda cuda: ones(3)[ones(3, device=cuda) > 0], ON_SELF_OR_CPU.format("cpu")),
    Refused(29, "cpu[:, cuda index]", lambda cuda: ones(2, 3)[:, index(1, device=cuda)], ON_SELF_OR_CPU.format("cpu")),
    Refused(29, "cpu[cpu index, cuda index]", lambda cuda: ones(2, 3)[index(1), index(1, device=cuda)],
            ON_SELF_OR_CPU.format("cpu")),
    Refused(29, "index of the other GPU", lambda cuda: ones(3, device=cuda)[index(1, device=OTHER)],
            ON_SELF_OR_CPU.format("cuda:0")),
    Refused(30, "accumulate", lambda cuda: ones(3, device=cuda).index_put_((index(1, 2),), ones(2), accumulate=True),
            VALUE),
    Refused(85, "index_put", lambda cuda: ones(3, device=cuda).index_put((index(1, 2),), ones(2)), two_devices()),
    Refused(85, "cuda[index] = cpu", lambda cuda: put(ones(3, device=cuda), index(1, 2, device=cuda), ones(2)),
            two_devices()),
    Refused(85, "cuda[mask] = cpu of two elements",
            lambda cuda: put(ones(2, device=cuda), ones(2, device=cuda) > 0, ones(2)), two_devices()),
    Refused(84, "cpu[cpu index] = cuda vector", lambda cuda: put(ones(3), index(1, 2), ones(2, device=cuda)),
            two_devices()),
    Refused(84, "cpu[cuda index] = cuda vector",
            lambda cuda: put(ones(3), index(1, 2, device=cuda), ones(2, device=cuda)), two_devices()),
    Legal(29, "cuda[cpu index]", lambda cuda: ones(3, device=cuda)[index(1)]),
    Legal(29, "cuda[cpu mask]", lambda cuda: ones(3, device=cuda)[ones(3) > 0]),
    Legal(29, "cuda[list]", lambda cuda: ones(3, device=cuda)[[0, 2]]),
    Legal(29, "cuda[array]", lambda cuda: ones(3, device=cuda)[np.array([0, 2])]),
    Legal(29, "cuda[cpu index, cuda index]", lambda cuda: ones(2, 3, device=cuda)[index(1), index(1, device=cuda)]),
    Legal(30, "zero-dim value", lambda cuda: put(ones(3, device=cuda), index(1), scalar())),
    Legal(30, "zero-dim value, accumulate",
          lambda cuda: ones(3, device=cuda).index_put_((index(1),), scalar(), accumulate=True)),
    Legal(31, "cuda[i] = cpu", lambda cuda: put(ones(3, 2, device=cuda), 1, ones(2))),
    Legal(31, "cuda[a:b] = cpu", lambda cuda: put(ones(3, device=cuda), slice(1, 3), ones(2))),
    Legal(31, "cpu[a:b] = cuda", lambda cuda: put(ones(3), slice(1, 3), ones(2, device=cuda)), device=HOST),
    Legal(31, "cuda[...] = other GPU", lambda cuda: put(ones(3, device=cuda), ..., ones(3, device=OTHER))),
    Legal(84, "cpu[cuda index] = number", lambda cuda: put(ones(3), index(1, device=cuda), 2.0), device=HOST),
    Legal(84, "cpu[cuda index] = cpu", lambda cuda: put(ones(3), index(1, 2, device=cuda), ones(2)), device=HOST),
    Legal(84, "cpu[cuda mask] = number", lambda cuda: put(ones(3), ones(3, device=cuda) > 0, 2.0), device=HOST),
    Legal(86, "cuda[mask] = one-element cpu", lambda cuda: put(ones(3, device=cuda), ones(3, device=cuda) > 0, ones(1))),
    Legal(86, "cuda[mask] = number", lambda cuda: put(ones(3, device=cuda), ones(3, device=cuda) > 0, 2.0)),
)  # fmt: skip

LAYERS = (
    # oneDNN takes float input on the CPU from these sizes on, and has its own words.
    Refused(32, "conv2d, cpu input", lambda cuda: nn.Conv2d(3, 8, 3, device=cuda)(ones(16, 3, 8, 8)),
            conv_types("FloatTensor", "weight", "cuda.FloatTensor", mkldnn=True)),
    Refused(32, "conv2d, cpu module", lambda cuda: nn.Conv2d(3, 8, 3)(ones(16, 3, 8, 8, device=cuda)),
            conv_types("cuda.FloatTensor", "weight", "FloatTensor")),
    Refused(32, "conv1d, cpu module", lambda cuda: nn.Conv1d(3, 8, 3)(ones(16, 3, 8, device=cuda)),
            conv_types("cuda.FloatTensor", "weight", "FloatTensor")),
    Refused(32, "conv3d, cpu module", lambda cuda: nn.Conv3d(3, 8, 3)(ones(2, 3, 8, 8, 8, device=cuda)),
            conv_types("cuda.FloatTensor", "weight", "FloatTensor")),
    Refused(32, "conv_transpose2d, cpu module", lambda cuda: nn.ConvTranspose2d(3, 8, 3)(ones(2, 3, 8, 8, device=cuda)),
            conv_types("cuda.FloatTensor", "weight", "FloatTensor")),
    Refused(32, "conv2d of doubles, cpu input", lambda cuda: nn.Conv2d(3, 8, 3).double().to(cuda)(
        ones(16, 3, 8, 8).double()), conv_types("DoubleTensor", "weight", "cuda.DoubleTensor")),
    Refused(32, "conv2d bias", lambda cuda: F.conv2d(ones(16, 3, 8, 8, device=cuda), ones(8, 3, 3, 3, device=cuda),
                                                     ones(8)),
            conv_types("cuda.FloatTensor", "bias", "FloatTensor")),
    Refused(32, "conv2d dtype", lambda cuda: nn.Conv2d(3, 8, 3, device=cuda)(ones(16, 3, 8, 8, device=cuda).half()),
            "Input type (c10::Half) and bias type (float) should be the same"),
    Refused(32, "conv2d of two GPUs", lambda cuda: F.conv2d(ones(16, 3, 8, 8, device=cuda),
                                                            ones(8, 3, 3, 3, device=OTHER)),
            exact_same("weight", OTHER, CUDA, "wrapper_CUDA__cudnn_convolution")),
    Refused(33, "LSTM, cpu input", lambda cuda: nn.LSTM(2, 3, device=cuda)(ones(4, 1, 2)),
            rnn_device("parameter", "cpu", "cuda:0")),
    Refused(33, "GRU, cpu module", lambda cuda: nn.GRU(2, 3)(ones(4, 1, 2, device=cuda)),
            rnn_device("parameter", "cuda:0", "cpu")),
    Refused(33, "RNN, cpu module", lambda cuda: nn.RNN(2, 3)(ones(4, 1, 2, device=cuda)),
            rnn_device("parameter", "cuda:0", "cpu")),
    Refused(33, "LSTM, cpu hidden state", lambda cuda: nn.LSTM(2, 3, device=cuda)(
        ones(4, 1, 2, device=cuda), (zeros(1, 1, 3), zeros(1, 1, 3))), rnn_device("hidden", "cuda:0", "cpu")),
    Refused(33, "GRU, cpu hidden state", lambda cuda: nn.GRU(2, 3, device=cuda)(
        ones(4, 1, 2, device=cuda), zeros(1, 1, 3)), rnn_device("hidden", "cuda:0", "cpu")),
    Refused(34, "attention", lambda cuda: F.scaled_dot_product_attention(
        ones(1, 1, 2, 4, device=cuda), *[ones(1, 1, 2, 4)] * 2),
            "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: "
            "cpu and value.device: cpu instead."),
    Refused(38, "masked_fill mask", lambda cuda: ones(3, device=cuda).masked_fill(ones(3) > 0, 0.0),
            MASK.format("cpu", "cuda:0")),
    Refused(38, "masked_fill_ mask, number from a tensor",
            lambda cuda: ones(3, device=cuda).masked_fill_(ones(3) > 0, scalar()), MASK.format("cpu", "cuda:0")),
    Refused(38, "masked_fill_ cpu self", lambda cuda: ones(3).masked_fill_(ones(3, device=cuda) > 0, 0.0),
            MASK.format("cuda:0", "cpu")),
    Refused(38, "masked_fill_ value of dimension 1",
            lambda cuda: ones(3, device=cuda).masked_fill_(ones(3, device=cuda) > 0, ones(1)),
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)."),
    Refused(38, "masked_fill_ cuda value", lambda cuda: ones(3).masked_fill_(ones(3) > 0, scalar(device=cuda)),
            "masked_fill_: Expected inputs to be on same device"),
    Refused(40, "lengths on the GPU", lambda cuda: rnn.pack_padded_sequence(ones(3, 1, 2, device=cuda),
                                                                        index(3, device=cuda)),
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"),
    Refused(42, "embedding of floats", lambda cuda: F.embedding(ones(2, device=cuda), ones(2, 3, device=cuda)),
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            "torch.cuda.FloatTensor instead (while checking arguments for embedding)"),
    Refused(43, "class target of floats", lambda cuda: F.cross_entropy(ones(2, 3, device=cuda), ones(2, device=cuda)),
            "Float", part=True),
    Legal(33, "LSTM on the GPU", lambda cuda: nn.LSTM(2, 3, device=cuda)(ones(4, 1, 2, device=cuda))),
    Legal(38, "zero-dim cpu value", lambda cuda: ones(3, device=cuda).masked_fill_(ones(3, device=cuda) > 0, scalar())),
    Legal(40, "lengths on the CPU", lambda cuda: rnn.pack_padded_sequence(ones(3, 1, 2, device=cuda), index(3)).data),
)  # fmt: skip

# Where the generated check of the CUDA kernel comes before the hand-written one, its words are what a user sees:
# grid_sampler_2d, searchsorted.Tensor, take, put_, index_copy_, multinomial.out and _linalg_solve_ex are ExactSame.
OTHERS = (
    Refused(35, "randn", lambda cuda: torch.randn(3, device=cuda, generator=torch.Generator()), GENERATOR),
    Refused(35, "rand of the CPU", lambda cuda: torch.rand(3, generator=torch.Generator(cuda)),
            "Expected a 'cpu' device type for generator but found 'cuda'"),
    Refused(35, "randint", lambda cuda: torch.randint(3, (2,), device=cuda, generator=torch.Generator()), GENERATOR),
    Refused(35, "randperm", lambda cuda: torch.randperm(3, device=cuda, generator=torch.Generator()), GENERATOR),
    Refused(35, "normal_", lambda cuda: ones(3, device=cuda).normal_(generator=torch.Generator()), GENERATOR),
    Refused(35, "uniform_", lambda cuda: ones(3, device=cuda).uniform_(generator=torch.Generator()), GENERATOR),
    Refused(35, "multinomial", lambda cuda: ones(3, device=cuda).multinomial(1, generator=torch.Generator()), GENERATOR),
    Refused(35, "bernoulli", lambda cuda: torch.bernoulli(ones(3, device=cuda), generator=torch.Generator()), GENERATOR),
    Refused(35, "shuffle under a default device", shuffle_under_default_device, GENERATOR),
    Refused(36, "numpy", lambda cuda: ones(3, device=cuda).numpy(), NUMPY, TypeError),
    Refused(36, "np.asarray", lambda cuda: np.asarray(ones(3, device=cuda)), NUMPY, TypeError),
    Refused(36, "__array__", lambda cuda: ones(3, device=cuda).__array__(), NUMPY, TypeError),
    Refused(36, "np.sqrt", lambda cuda: np.sqrt(ones(3, device=cuda)), NUMPY, TypeError),
    Refused(36, "of the other GPU", lambda cuda: ones(3, device=OTHER).numpy(), NUMPY.replace(CUDA, OTHER), TypeError),
    Refused(36, "detached", lambda cuda: ones(3, device=cuda, requires_grad=True).detach().numpy(), NUMPY, TypeError),
    Refused(36, "requires grad", lambda cuda: ones(3, device=cuda, requires_grad=True).numpy(),
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
    Refused(37, "pin_memory", lambda cuda: ones(3, device=cuda).pin_memory(),
            "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"),
    Refused(37, "pin_memory of integers", lambda cuda: index(1, device=cuda).pin_memory(),
            "cannot pin 'torch.cuda.LongTensor' only dense CPU tensors can be pinned"),
    Refused(39, "searchsorted", lambda cuda: torch.searchsorted(arange(3.0, device=cuda), ones(2)),
            exact_same("self", HOST, CUDA, "wrapper_CUDA_Tensor_searchsorted")),
    Refused(39, "searchsorted, cpu boundaries", lambda cuda: torch.searchsorted(arange(3.0), ones(2, device=cuda)),
            exact_same("self", CUDA, HOST, "wrapper_CUDA_Tensor_searchsorted")),
    Refused(39, "sorter", lambda cuda: torch.searchsorted(arange(3.0, device=cuda), ones(2, device=cuda),
                                                          sorter=arange(3)),
            "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor "
            "device type cpu and input value tensor device type cuda", part=True),
    Refused(41, "grid_sample", lambda cuda: F.grid_sample(ones(1, 1, 4, 4, device=cuda), zeros(1, 2, 2, 2),
                                                          align_corners=False),
            exact_same("grid", HOST, CUDA, "wrapper_CUDA__grid_sampler_2d")),
    Refused(41, "stft", lambda cuda: torch.stft(ones(1, 100, device=cuda), 16, window=ones(16), return_complex=True),
            "stft input and window must be on the same device but got self on cuda:0 and window on cpu"),
    Refused(41, "istft", lambda cuda: torch.istft(torch.ones(1, 9, 20, dtype=torch.complex64, device=cuda), 16,
                                                  window=ones(16)),
            "istft input and window must be on the same device but got self on cuda:0 and window on cpu"),
    Refused(41, "quantile", lambda cuda: torch.quantile(ones(4, device=cuda), ones(2) / 2),
            "quantile() q tensor must be on the same device as the input tensor"),
    Refused(41, "meshgrid", lambda cuda: torch.meshgrid(arange(2, device=cuda), arange(2), indexing="ij"),
            "meshgrid expects all tensors to have the same device"),
    Refused(41, "block_diag", lambda cuda: torch.block_diag(ones(2, 2, device=cuda), ones(2, 2)),
            "torch.block_diag: input tensors must all be on the same device. Input 0 is on device cuda:0 and input 1 "
            "is on device cpu"),
    Refused(41, "gradient", lambda cuda: torch.gradient(ones(4, device=cuda), spacing=(arange(4.0),)),
            "torch.gradient expected each tensor to be on the same device, but got devices cuda:0 and cpu!"),
    Refused(41, "weight_norm", lambda cuda: torch._weight_norm(ones(2, 3, device=cuda), ones(2, 1)),
            "weight_norm: expected v_in and g_in to be on the same device, but v_in is on cuda:0 and g_in is on cpu"),
    Refused(41, "multi_dot", lambda cuda: torch.linalg.multi_dot([ones(2, 3, device=cuda), ones(3, 2), ones(2, 2)]),
            "multi_dot(): all tensors must be on the same device but tensor 0 is on cuda:0 and tensor 1 on cpu"),
    Refused(41, "dot out", lambda cuda: torch.dot(*[ones(2, device=cuda)] * 2, out=ones(())),
            "dot: Expected the output and input tensors to be on the same device, but got the output tensor on cpu, "
            "the 'input' tensor on cuda:0, and the 'other' tensor on cuda:0"),
    Refused(41, "tensordot out", lambda cuda: torch.tensordot(*[ones(2, 2, device=cuda)] * 2, dims=1, out=ones(2, 2)),
            "tensordot: Expected the output and input tensors to be on the same device, but got the output tensor on "
            "cpu, input tensor a on cuda:0, and input tensor b on cuda:0"),
    Refused(41, "cholesky_solve", lambda cuda: torch.cholesky_solve(ones(2, 1), torch.eye(2, device=cuda)),
            "Expected b and A to be on the same device, but found b on cpu and A on cuda:0 instead."),
    Refused(41, "solve", lambda cuda: torch.linalg.solve(torch.eye(2, device=cuda), ones(2, 1)),
            exact_same("B", HOST, CUDA, "wrapper_CUDA__linalg_solve_ex")),
    Refused(41, "multinomial out", lambda cuda: torch.multinomial(ones(3, device=cuda), 1, out=index(0)),
            exact_same("self", CUDA, HOST, "wrapper_CUDA_out_multinomial_out")),
    Refused(41, "take_along_dim", lambda cuda: torch.take_along_dim(ones(2, 3, device=cuda), zeros(2, 1).long(), 1),
            "Expected tensor to have cuda:0 Device, but got tensor with cpu Device (while checking arguments for "
            "torch.take_along_dim():)"),
    Refused(41, "tensor_split", lambda cuda: torch.tensor_split(ones(4), index(1, 2, device=cuda)),
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0"),
    Refused(47, "set_", lambda cuda: ones(3).set_(ones(3, device=cuda)),
            'Attempted to set the storage of a tensor on device "cpu" to a storage on different device "cuda:0".  '
            "This is no longer allowed; the devices must match."),
    Refused(47, "set_ of a storage", lambda cuda: ones(3, device=cuda).set_(ones(3).untyped_storage()),
            'on different device "cpu".  This is no longer allowed; the devices must match.', part=True),
    Legal(35, "generator of the GPU", lambda cuda: torch.randn(3, device=cuda, generator=torch.Generator(cuda))),
    Legal(36, "numpy by force", lambda cuda: torch.from_numpy(ones(3, device=cuda).numpy(force=True)), device=HOST),
    Legal(36, "numpy by way of the CPU", lambda cuda: torch.from_numpy(ones(3, device=cuda).cpu().numpy()), device=HOST),
    Legal(41, "tensor_split of the GPU", lambda cuda: torch.tensor_split(ones(4, device=cuda), index(1, 2))),
)  # fmt: skip


@pytest.mark.parametrize("case", [c for c in INDEXING + LAYERS + OTHERS if isinstance(c, Refused)], ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", [c for c in INDEXING + LAYERS + OTHERS if isinstance(c, Legal)], ids=str)
def test_legal(case, session):
    case.check(session)


def test_row_30_deterministic_mode_sorts_the_index(session):
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError) as caught:
            ones(3, device=CUDA).index_put_((index(1, 2),), ones(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert str(caught.value) == VALUE


def test_row_34_wording_is_the_same_for_two_gpus(session):
    with pytest.raises(RuntimeError, match=r"query\.device: cuda:0 key\.device: cuda:1"):
        F.scaled_dot_product_attention(ones(1, 2, 4, device=CUDA), *[ones(1, 2, 4, device=OTHER)] * 2)


def test_row_43_names_the_wanted_type(session):
    with pytest.raises(RuntimeError, match="Long"):
        F.nll_loss(ones(2, 3, device=CUDA), ones(2, device=CUDA))


"""What is legal on CUDA stays legal: every module of torch.nn and every loss, forward and backward."""

import copy
import inspect

import pytest
import torch
from rule_cases import CUDA, agree, torch_at_least
from rule_parts import r, whole
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecations of torch


def sign(device, *shape):
    return (torch.randint(2, shape) * 2 - 1).to(device)


# class, arguments, inputs by device
MODULES = (
    *(
        (cls, (), lambda d: (r(d, 2, 4),))
        for cls in (
            nn.CELU,
            nn.ELU,
            nn.GELU,
            nn.Hardshrink,
            nn.Hardsigmoid,
            nn.Hardswish,
            nn.Hardtanh,
            nn.Identity,
            nn.LeakyReLU,
            nn.LogSigmoid,
            nn.Mish,
            nn.PReLU,
            nn.ReLU,
            nn.ReLU6,
            nn.RReLU,
            nn.SELU,
            nn.SiLU,
            nn.Sigmoid,
            nn.Softplus,
            nn.Softshrink,
            nn.Softsign,
            nn.Tanh,
            nn.Tanhshrink,
            nn.Dropout,
            nn.AlphaDropout,
            nn.FeatureAlphaDropout,
        )
    ),
    *((cls, (-1,), lambda d: (r(d, 2, 4),)) for cls in (nn.GLU, nn.LogSoftmax, nn.Softmax, nn.Softmin)),
    (nn.Softmax2d, (), lambda d: (r(d, 1, 2, 3, 3),)),
    (nn.Threshold, (0.1, 1.0), lambda d: (r(d, 2, 4),)),
    (nn.Linear, (4, 3), lambda d: (r(d, 2, 4),)),
    (nn.LazyLinear, (3,), lambda d: (r(d, 2, 4),)),
    (nn.Bilinear, (4, 3, 2), lambda d: (r(d, 2, 4), r(d, 2, 3))),
    (nn.Embedding, (5, 3), lambda d: (whole(d, 2, 2, high=3),)),
    (nn.EmbeddingBag, (5, 3), lambda d: (whole(d, 2, 2, high=3),)),
    (nn.Flatten, (), lambda d: (r(d, 2, 2, 3),)),
    (nn.Unflatten, (1, (2, 2)), lambda d: (r(d, 2, 4),)),
    (nn.Fold, ((4, 4), 2), lambda d: (r(d, 1, 8, 9),)),
    (nn.Unfold, (2,), lambda d: (r(d, 1, 2, 4, 4),)),
    (nn.PixelShuffle, (2,), lambda d: (r(d, 1, 4, 2, 2),)),
    (nn.PixelUnshuffle, (2,), lambda d: (r(d, 1, 1, 4, 4),)),
    (nn.ChannelShuffle, (2,), lambda d: (r(d, 1, 4, 2, 2),)),
    (nn.CosineSimilarity, (), lambda d: (r(d, 2, 3), r(d, 2, 3))),
    (nn.PairwiseDistance, (), lambda d: (r(d, 2, 3), r(d, 2, 3))),
    (nn.Upsample, (None, 2), lambda d: (r(d, 1, 2, 3, 3),)),
    (nn.UpsamplingNearest2d, (None, 2), lambda d: (r(d, 1, 2, 3, 3),)),
    (nn.UpsamplingBilinear2d, (None, 2), lambda d: (r(d, 1, 2, 3, 3),)),
    (nn.Conv1d, (2, 3, 3), lambda d: (r(d, 2, 2, 8),)),
    (nn.Conv2d, (2, 3, 3), lambda d: (r(d, 2, 2, 8, 8),)),
    (nn.Conv3d, (2, 3, 3), lambda d: (r(d, 1, 2, 4, 4, 4),)),
    (nn.ConvTranspose1d, (2, 3, 3), lambda d: (r(d, 2, 2, 8),)),
    (nn.ConvTranspose2d, (2, 3, 3), lambda d: (r(d, 2, 2, 4, 4),)),
    (nn.ConvTranspose3d, (2, 3, 3), lambda d: (r(d, 1, 2, 3, 3, 3),)),
    (nn.LazyConv1d, (3, 3), lambda d: (r(d, 2, 2, 8),)),
    (nn.LazyConv2d, (3, 3), lambda d: (r(d, 2, 2, 8, 8),)),
    (nn.LazyConv3d, (3, 3), lambda d: (r(d, 1, 2, 4, 4, 4),)),
    (nn.LazyConvTranspose1d, (3, 3), lambda d: (r(d, 2, 2, 8),)),
    (nn.LazyConvTranspose2d, (3, 3), lambda d: (r(d, 2, 2, 4, 4),)),
    (nn.LazyConvTranspose3d, (3, 3), lambda d: (r(d, 1, 2, 3, 3, 3),)),
    (nn.BatchNorm1d, (3,), lambda d: (r(d, 4, 3),)),
    (nn.BatchNorm2d, (3,), lambda d: (r(d, 2, 3, 4, 4),)),
    (nn.BatchNorm3d, (3,), lambda d: (r(d, 2, 3, 2, 2, 2),)),
    (nn.LazyBatchNorm1d, (), lambda d: (r(d, 4, 3),)),
    (nn.LazyBatchNorm2d, (), lambda d: (r(d, 2, 3, 4, 4),)),
    (nn.LazyBatchNorm3d, (), lambda d: (r(d, 2, 3, 2, 2, 2),)),
    (nn.SyncBatchNorm, (3,), lambda d: (r(d, 4, 3),)),
    (nn.InstanceNorm1d, (3, 1e-5, 0.1, True), lambda d: (r(d, 2, 3, 4),)),
    (nn.InstanceNorm2d, (3,), lambda d: (r(d, 2, 3, 4, 4),)),
    (nn.InstanceNorm3d, (3,), lambda d: (r(d, 2, 3, 2, 2, 2),)),
    (nn.LazyInstanceNorm1d, (), lambda d: (r(d, 2, 3, 4),)),
    (nn.LazyInstanceNorm2d, (), lambda d: (r(d, 2, 3, 4, 4),)),
    (nn.LazyInstanceNorm3d, (), lambda d: (r(d, 2, 3, 2, 2, 2),)),
    (nn.LayerNorm, (4,), lambda d: (r(d, 2, 4),)),
    (nn.RMSNorm, (4,), lambda d: (r(d, 2, 4),)),
    (nn.GroupNorm, (2, 4), lambda d: (r(d, 2, 4, 3),)),
    (nn.LocalResponseNorm, (2,), lambda d: (r(d, 1, 4, 3),)),
    (nn.CrossMapLRN2d, (2,), lambda d: (r(d, 1, 4, 3, 3),)),
    (nn.Dropout1d, (), lambda d: (r(d, 2, 3, 4),)),
    (nn.Dropout2d, (), lambda d: (r(d, 2, 3, 2, 2),)),
    (nn.Dropout3d, (), lambda d: (r(d, 2, 3, 2, 2, 2),)),
    *(
        (cls, (2,), lambda d: (r(d, 1, 2, 6),))
        for cls in (nn.AvgPool1d, nn.MaxPool1d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d)
    ),
    *(
        (cls, (2,), lambda d: (r(d, 1, 2, 6, 6),))
        for cls in (nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)
    ),
    *(
        (cls, (2,), lambda d: (r(d, 1, 2, 4, 4, 4),))
        for cls in (nn.AvgPool3d, nn.MaxPool3d, nn.AdaptiveAvgPool3d, nn.AdaptiveMaxPool3d)
    ),
    (nn.LPPool1d, (2, 2), lambda d: (r(d, 1, 2, 6).abs(),)),
    (nn.LPPool2d, (2, 2), lambda d: (r(d, 1, 2, 6, 6).abs(),)),
    (nn.LPPool3d, (2, 2), lambda d: (r(d, 1, 2, 4, 4, 4).abs(),)),
    (nn.FractionalMaxPool2d, (2, 3), lambda d: (r(d, 1, 2, 6, 6),)),
    (nn.FractionalMaxPool3d, (2, 3), lambda d: (r(d, 1, 2, 6, 6, 6),)),
    (nn.MaxUnpool1d, (2,), lambda d: nn.MaxPool1d(2, return_indices=True)(r(d, 1, 2, 6))),
    (nn.MaxUnpool2d, (2,), lambda d: nn.MaxPool2d(2, return_indices=True)(r(d, 1, 2, 4, 4))),
    (nn.MaxUnpool3d, (2,), lambda d: nn.MaxPool3d(2, return_indices=True)(r(d, 1, 2, 4, 4, 4))),
    *(
        (cls, (a,), lambda d: (r(d, 1, 2, 4),))
        for cls, a in (
            (nn.ZeroPad1d, 1),
            (nn.ReflectionPad1d, 1),
            (nn.ReplicationPad1d, 1),
            (nn.CircularPad1d, 1),
        )
    ),
    *(
        (cls, (1,), lambda d: (r(d, 1, 2, 4, 4),))
        for cls in (nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d, nn.CircularPad2d)
    ),
    *(
        (cls, (1,), lambda d: (r(d, 1, 2, 4, 4, 4),))
        for cls in (nn.ZeroPad3d, nn.ReflectionPad3d, nn.ReplicationPad3d, nn.CircularPad3d)
    ),
    (nn.ConstantPad1d, (1, 2.0), lambda d: (r(d, 1, 2, 4),)),
    (nn.ConstantPad2d, (1, 2.0), lambda d: (r(d, 1, 2, 4, 4),)),
    (nn.ConstantPad3d, (1, 2.0), lambda d: (r(d, 1, 2, 2, 2, 2),)),
    *((cls, (3, 4, 2), lambda d: (r(d, 5, 2, 3),)) for cls in (nn.RNN, nn.LSTM, nn.GRU)),
    (nn.RNNCell, (3, 4), lambda d: (r(d, 2, 3),)),
    (nn.LSTMCell, (3, 4), lambda d: (r(d, 2, 3), (r(d, 2, 4), r(d, 2, 4)))),
    (nn.GRUCell, (3, 4), lambda d: (r(d, 2, 3), r(d, 2, 4))),
    (nn.MultiheadAttention, (4, 2), lambda d: (r(d, 3, 2, 4),) * 3),
    (nn.TransformerEncoderLayer, (4, 2, 8), lambda d: (r(d, 3, 2, 4),)),
    (nn.TransformerDecoderLayer, (4, 2, 8), lambda d: (r(d, 3, 2, 4), r(d, 3, 2, 4))),
    (nn.TransformerEncoder, (nn.TransformerEncoderLayer(4, 2, 8), 2), lambda d: (r(d, 3, 2, 4),)),
    (
        nn.TransformerDecoder,
        (nn.TransformerDecoderLayer(4, 2, 8), 2),
        lambda d: (r(d, 3, 2, 4), r(d, 3, 2, 4)),
    ),
    (nn.Transformer, (4, 2, 1, 1, 8), lambda d: (r(d, 3, 2, 4), r(d, 3, 2, 4))),
    (nn.AdaptiveLogSoftmaxWithLoss, (4, 9, [3, 6]), lambda d: (r(d, 5, 4), whole(d, 5, high=9))),
    (nn.L1Loss, (), lambda d: (r(d, 3), r(d, 3))),
    (nn.MSELoss, (), lambda d: (r(d, 3), r(d, 3))),
    (nn.SmoothL1Loss, (), lambda d: (r(d, 3), r(d, 3))),
    (nn.HuberLoss, (), lambda d: (r(d, 3), r(d, 3))),
    (nn.BCELoss, (), lambda d: (r(d, 3).sigmoid(), r(d, 3).sigmoid())),
    (nn.BCEWithLogitsLoss, (), lambda d: (r(d, 3), r(d, 3).sigmoid())),
    (nn.CrossEntropyLoss, (torch.ones(3),), lambda d: (r(d, 4, 3), whole(d, 4, high=3))),
    (nn.NLLLoss, (), lambda d: (r(d, 4, 3), whole(d, 4, high=3))),
    (nn.NLLLoss2d, (), lambda d: (r(d, 2, 3, 2, 2), whole(d, 2, 2, 2, high=3))),
    (nn.KLDivLoss, (), lambda d: (r(d, 2, 3).log_softmax(1), r(d, 2, 3).softmax(1))),
    (nn.PoissonNLLLoss, (), lambda d: (r(d, 3), r(d, 3).abs())),
    (nn.GaussianNLLLoss, (), lambda d: (r(d, 3), r(d, 3), r(d, 3).abs())),
    (nn.HingeEmbeddingLoss, (), lambda d: (r(d, 3), sign(d, 3))),
    (nn.SoftMarginLoss, (), lambda d: (r(d, 3), sign(d, 3))),
    (nn.MultiLabelMarginLoss, (), lambda d: (r(d, 2, 3), torch.tensor([[0, -1, 1], [1, 2, -1]]).to(d))),
    (nn.MultiLabelSoftMarginLoss, (), lambda d: (r(d, 2, 3), whole(d, 2, 3, high=2))),
    (nn.MultiMarginLoss, (), lambda d: (r(d, 2, 3), whole(d, 2, high=3))),
    (nn.MarginRankingLoss, (), lambda d: (r(d, 3), r(d, 3), sign(d, 3))),
    (nn.CosineEmbeddingLoss, (), lambda d: (r(d, 2, 3), r(d, 2, 3), sign(d, 2))),
    (nn.TripletMarginLoss, (), lambda d: (r(d, 2, 3), r(d, 2, 3), r(d, 2, 3))),
    (nn.TripletMarginWithDistanceLoss, (), lambda d: (r(d, 2, 3), r(d, 2, 3), r(d, 2, 3))),
    (
        nn.CTCLoss,
        (),
        lambda d: (
            r(d, 6, 2, 4).log_softmax(2),
            torch.tensor([[1, 2], [3, 1]]).to(d),
            torch.tensor([6, 6]),
            torch.tensor([2, 2]),
        ),
    ),
    *(
        [(nn.LinearCrossEntropyLoss, (4, 3), lambda d: (r(d, 2, 4), whole(d, 2, high=3)))]
        if hasattr(nn, "LinearCrossEntropyLoss")
        else []
    ),
)

# Containers, and classes that are made to be derived from or that are tested by what contains them.
NOT_CALLED = {
    nn.Module,
    nn.Sequential,
    nn.ModuleList,
    nn.ModuleDict,
    nn.ParameterList,
    nn.ParameterDict,
    nn.Container,
    nn.DataParallel,
    nn.RNNBase,
    nn.RNNCellBase,
}


# torch 2.4 has no derivative of it.
FORWARD_ONLY = set() if torch_at_least("2.5") else {nn.ChannelShuffle}


def forward_and_backward(cls, arguments, inputs):
    def snippet(device):
        torch.manual_seed(0)
        module = cls(*copy.deepcopy(arguments)).to(device)
        if next(module.children(), None) is None and hasattr(module, "initialize_parameters"):
            module(*inputs(device))  # lazy modules get their parameters now
        leaves = [x.detach().requires_grad_() if _differentiable(cls, x) else x for x in inputs(device)]
        output = module(*leaves)
        first = next(t for t in _tensors(output) if t.is_floating_point())
        if first.requires_grad:
            first.sum().backward()
        grads = [p.grad for p in module.parameters() if p.grad is not None]
        grads += [x.grad for x in leaves if isinstance(x, torch.Tensor) and x.grad is not None]
        return list(_tensors(output)), grads, dict(module.state_dict())

    return snippet


def _differentiable(cls, value):
    return cls not in FORWARD_ONLY and isinstance(value, torch.Tensor) and value.is_floating_point()


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


@pytest.mark.parametrize("row", MODULES, ids=[row[0].__name__ for row in MODULES])
def test_the_gpu_computes_what_the_cpu_does(row):
    agree(forward_and_backward(*row), CUDA, anywhere=True)


@pytest.mark.parametrize("row", MODULES[:60:6], ids=[row[0].__name__ for row in MODULES[:60:6]])
def test_all_of_it_is_on_the_gpu(row, session):
    assert {
        str(t.device)
        for part in forward_and_backward(*row)(CUDA)
        for t in (part.values() if isinstance(part, dict) else part)
    } == {CUDA}


def test_every_module_of_torch_nn_is_there():
    classes = {cls for _, cls in inspect.getmembers(nn, inspect.isclass) if issubclass(cls, nn.Module)}
    assert {cls.__name__ for cls in classes - NOT_CALLED - {row[0] for row in MODULES}} == set()

"""What is legal on CUDA stays legal: shapes, indexing and factories."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, agree
from rule_parts import positive, r, whole

pytestmark = pytest.mark.filterwarnings("ignore")  # prototypes and deprecations of torch


def edited(tensor, edit):
    edit(tensor)
    return tensor


SHAPES = {
    "reshape and view": lambda d: r(d, 2, 6).reshape(3, 4).view(12).view(4, 3).flatten(),
    "permute, transpose, T, mT": lambda d: (
        r(d, 2, 3).T,
        r(d, 2, 3, 4).permute(2, 0, 1),
        r(d, 2, 3).mT,
        r(d, 2, 3).t(),
    ),
    "squeeze, unsqueeze": lambda d: r(d, 1, 3).squeeze(0).unsqueeze(-1),
    "expand, repeat, tile": lambda d: (
        r(d, 1, 3).expand(2, 3),
        r(d, 3).repeat(2, 2),
        torch.tile(r(d, 3), (2,)),
    ),
    "cat, stack, hstack, vstack, dstack": lambda d: [
        f([r(d, 2, 2), r(d, 2, 2)]) for f in (torch.cat, torch.stack, torch.hstack, torch.vstack, torch.dstack)
    ],
    "split, chunk, unbind": lambda d: (r(d, 6).split(2), r(d, 6).chunk(4), r(d, 2, 2).unbind(0)),
    "tensor_split, hsplit": lambda d: (torch.tensor_split(r(d, 7), 3), torch.hsplit(r(d, 2, 4), 2)),
    "narrow, select, diagonal, unfold": lambda d: (
        r(d, 4).narrow(0, 1, 2),
        r(d, 3, 3).select(0, 1),
        r(d, 3, 3).diagonal(),
        r(d, 6).unfold(0, 3, 2),
    ),
    "as_strided": lambda d: torch.as_strided(r(d, 9), (2, 2), (3, 1)),
    "flip, roll, rot90, fliplr": lambda d: (
        r(d, 2, 3).flip(0),
        r(d, 4).roll(1),
        torch.rot90(r(d, 2, 3)),
        torch.fliplr(r(d, 2, 3)),
    ),
    "movedim, swapaxes": lambda d: (torch.movedim(r(d, 2, 3, 4), 0, 2), torch.swapaxes(r(d, 2, 3), 0, 1)),
    "broadcast_tensors, broadcast_to": lambda d: (
        torch.broadcast_tensors(r(d, 3, 1), r(d, 4)),
        torch.broadcast_to(r(d, 3), (2, 3)),
    ),
    "contiguous, clone, detach": lambda d: (r(d, 2, 3).T.contiguous(), r(d, 2).clone(), r(d, 2).detach()),
    "channels_last": lambda d: r(d, 1, 2, 3, 3).to(memory_format=torch.channels_last).contiguous(),
    "triu, tril, diag, diag_embed, diagflat": lambda d: (
        r(d, 3, 3).triu(),
        r(d, 3, 3).tril(),
        torch.diag(r(d, 3)),
        torch.diag_embed(r(d, 2, 3)),
        torch.diagflat(r(d, 3)),
    ),
    "block_diag, meshgrid, cartesian_prod, combinations": lambda d: (
        torch.block_diag(r(d, 2, 2), r(d, 3)),
        torch.meshgrid(r(d, 2), r(d, 3), indexing="ij"),
        torch.cartesian_prod(r(d, 2), r(d, 3)),
        torch.combinations(r(d, 3)),
    ),
    "view as another type": lambda d: r(d, 4).view(torch.int32),
    "view_as_real, view_as_complex": lambda d: torch.view_as_real(torch.view_as_complex(r(d, 3, 2))),
    "unflatten, ravel": lambda d: r(d, 6).unflatten(0, (2, 3)).ravel(),
    "resize_": lambda d: r(d, 6).resize_(2, 2),
    "pixel_shuffle, pixel_unshuffle": lambda d: F.pixel_unshuffle(F.pixel_shuffle(r(d, 1, 4, 2, 2), 2), 2),
    "sizes and numbers": lambda d: torch.tensor([r(d, 2, 3).numel(), r(d, 2, 3).dim(), len(r(d, 4))], device=d),
}

INDEXING = {
    "slices": lambda d: (r(d, 4)[1], r(d, 4)[1:3], r(d, 4)[::2], r(d, 2, 3)[..., 1], r(d, 2, 3)[None, :, 0]),
    "masks": lambda d: edited(r(d, 6), lambda x: x.__setitem__(x > 0, 0.0)),
    "mask of the CPU": lambda d: r(d, 3)[torch.tensor([True, False, True])],
    "index tensors": lambda d: r(d, 4, 4)[whole(d, 3, high=4), whole(d, 3, high=4)],
    "index tensors of the CPU": lambda d: r(d, 4, 4)[torch.tensor([0, 1]), torch.tensor([2, 3])],
    "lists": lambda d: (r(d, 4)[[0, 2]], r(d, 4, 4)[[0, 1], [2, 3]], r(d, 4, 3)[[[0], [1]]]),
    "NumPy arrays": lambda d: r(d, 4)[np.array([1, 3])],
    "zero-dim index": lambda d: r(d, 4)[torch.tensor(2, device=d)],
    "range from a tensor": lambda d: r(d, 4)[: int(torch.tensor(2, device=d))],
    "assign a slice": lambda d: edited(r(d, 4), lambda x: x.__setitem__(slice(1, 3), r(d, 2))),
    "assign a number": lambda d: edited(r(d, 2, 3), lambda x: x.__setitem__((slice(None), 1), 7.0)),
    "assign a list": lambda d: edited(r(d, 3), lambda x: x.__setitem__(1, torch.tensor(7.0))),
    "assign by index": lambda d: edited(r(d, 4), lambda x: x.__setitem__(whole(d, 2, high=1), 3.0)),
    "assign by index of the CPU": lambda d: edited(r(d, 4), lambda x: x.__setitem__(torch.tensor([1]), r(d, 1))),
    "add by index": lambda d: edited(r(d, 4), lambda x: x[1:].add_(1)),
    "augmented": lambda d: edited(r(d, 4), lambda x: x.__setitem__(0, x[0] + 1)),
    "gather, scatter": lambda d: (
        r(d, 3, 4).scatter(1, whole(d, 3, 2, high=4), r(d, 3, 2)).gather(1, whole(d, 3, 1)[:, :1] % 4)
    ),
    "scatter_add, scatter_reduce": lambda d: (
        r(d, 4).scatter_add(0, whole(d, 4, high=4), r(d, 4)),
        r(d, 4).scatter_reduce(0, whole(d, 4, high=4), r(d, 4), "amax"),
    ),
    "scatter_ value": lambda d: torch.zeros(2, 3, device=d).scatter_(1, whole(d, 2, 1, high=3), 1.0),
    "index_select, index_add, index_copy, index_fill": lambda d: (
        r(d, 4).index_select(0, whole(d, 2, high=4)),
        r(d, 4).index_add(0, whole(d, 2, high=4), r(d, 2)),
        r(d, 4).index_copy(0, torch.tensor([2, 0]).to(d), r(d, 2)),
        r(d, 4).index_fill(0, whole(d, 2, high=4), 1.0),
    ),
    "index_put_ accumulate": lambda d: r(d, 4).index_put_((whole(d, 3, high=4),), r(d, 3), accumulate=True),
    "take, put_, take_along_dim": lambda d: (
        r(d, 4).take(whole(d, 2, high=4)),
        r(d, 4).put_(torch.tensor([1, 3]).to(d), r(d, 2)),
        torch.take_along_dim(r(d, 2, 3), whole(d, 2, 1, high=3), 1),
    ),
    "masked_fill, masked_select, masked_scatter": lambda d: (
        r(d, 4).masked_fill(r(d, 4) > 0, -math.inf),
        torch.masked_select(r(d, 4), r(d, 4) > 0),
        r(d, 4).masked_scatter(r(d, 4) > 0, r(d, 4)),
    ),
    "where": lambda d: (torch.where(r(d, 4) > 0, r(d, 4), 0.0), torch.where(r(d, 4) > 0)),
    "nonzero, argwhere": lambda d: (
        r(d, 4).gt(0).nonzero(),
        torch.nonzero(r(d, 4) > 0, as_tuple=True),
        torch.argwhere(r(d, 4) > 0),
    ),
    "select_scatter, slice_scatter": lambda d: (
        torch.select_scatter(r(d, 2, 2), r(d, 2), 0, 0),
        torch.slice_scatter(r(d, 4), r(d, 2), start=1, end=3),
    ),
    "searchsorted, bucketize": lambda d: (
        torch.searchsorted(r(d, 5).sort()[0], r(d, 3)),
        torch.bucketize(r(d, 3), torch.linspace(-1, 1, 4, device=d)),
        torch.searchsorted(r(d, 5).sort()[0], 0.5),
    ),
    "iteration": lambda d: [row * 2 for row in r(d, 3, 2)],
    "unpacking": lambda d: sum(r(d, 3)),
}

FACTORIES = {
    "zeros, ones, full, empty": lambda d: (
        torch.zeros(2, device=d),
        torch.ones(2, device=d),
        torch.full((2,), 3.0, device=d),
        torch.empty(2, device=d).fill_(1),
    ),
    "like": lambda d: [f(r(d, 2)) for f in (torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like)],
    "full_like, randint_like, empty_like": lambda d: (
        torch.full_like(r(d, 2), 2),
        torch.randint_like(r(d, 2), 3),
        torch.empty_like(r(d, 2)).zero_(),
    ),
    "new_*": lambda d: (
        r(d, 2).new_zeros(2),
        r(d, 2).new_ones(2),
        r(d, 2).new_tensor([1.0]),
        r(d, 2).new_full((2,), 1.0),
        r(d, 2).new_empty(2).fill_(0),
    ),
    "new": lambda d: r(d, 2).new(2, 2).zero_(),
    "arange, linspace, logspace, eye, range": lambda d: (
        torch.arange(3, device=d),
        torch.linspace(0, 1, 3, device=d),
        torch.logspace(0, 1, 3, device=d),
        torch.eye(2, device=d),
    ),
    "random": lambda d: (
        torch.rand(2, device=d),
        torch.randn(2, device=d),
        torch.randint(5, (2,), device=d),
        torch.randperm(5, device=d),
    ),
    "in-place random": lambda d: [
        getattr(torch.empty(3, device=d), f)()
        for f in ("normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "bernoulli_", "random_")
    ],
    "geometric_": lambda d: torch.empty(3, device=d).geometric_(0.5),
    "normal, bernoulli, multinomial, poisson": lambda d: (
        torch.normal(r(d, 3), 1.0),
        torch.normal(0.0, 1.0, (3,), device=d),
        torch.bernoulli(positive(d, 3) / 2),
        torch.multinomial(positive(d, 3), 2),
        torch.poisson(positive(d, 3)),
    ),
    "generator": lambda d: torch.randn(3, device=d, generator=torch.Generator(d).manual_seed(3)),
    "tensor, as_tensor, from_numpy": lambda d: (
        torch.tensor([1, 2], device=d),
        torch.as_tensor([1.0], device=d),
        torch.as_tensor(np.ones(2), device=d),
        torch.from_numpy(np.ones(2)).to(d),
        torch.asarray([1.0], device=d),
    ),
    "tensor of zero-dim tensors": lambda d: torch.tensor([r(d, 1).sum(), r(d, 1).sum()], device=d),
    "tril_indices, triu_indices": lambda d: (
        torch.tril_indices(3, 3, device=d),
        torch.triu_indices(3, 3, device=d),
    ),
    "windows": lambda d: [
        getattr(torch, f"{w}_window")(8, device=d) for w in ("hann", "hamming", "blackman", "bartlett", "kaiser")
    ],
    "complex, polar": lambda d: (torch.complex(r(d, 2), r(d, 2)), torch.polar(positive(d, 2), r(d, 2))),
    "vander": lambda d: torch.vander(r(d, 3)),
    "default device": lambda d: _under_default(d),
}


def _under_default(device):
    with torch.device(device):
        return torch.zeros(2), torch.arange(3), torch.tensor([1.0]), torch.nn.Linear(2, 2).weight


TABLE = {**SHAPES, **INDEXING, **FACTORIES}


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)

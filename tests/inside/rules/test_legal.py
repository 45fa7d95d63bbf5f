"""What is legal on CUDA stays legal: operators. Each gives on the GPU exactly what it gives on the CPU."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, agree
from rule_parts import positive, r, whole, words
from torch import fft, linalg, special

pytestmark = pytest.mark.filterwarnings("ignore")  # prototypes and deprecations of torch


def spd(device, n=3):
    a = torch.randn(n, n)
    return (a @ a.T + n * torch.eye(n)).to(device)


UNARY = words(
    "abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 ",
    "expm1 fix floor ",
    "frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logit nan_to_num neg positive ",
    "rad2deg ",
    "reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc",
)
REDUCTIONS = words(
    "sum mean prod std var max min amax amin argmax argmin any all median nanmedian nansum nanmean norm ",
    "logsumexp mode ",
    "cumsum cumprod cummax cummin logcumsumexp count_nonzero aminmax std_mean var_mean",
)
WITH_DIM = {"logsumexp", "mode", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}
SPECIAL = words(
    "entr erfcx i0 i0e i1 i1e log_ndtr ndtr ndtri expit bessel_j0 bessel_j1 bessel_y0 modified_bessel_i0 ",
    "spherical_bessel_j0",
)
ACTIVATIONS = words(
    "celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 ",
    "rrelu selu silu ",
    "softplus softshrink softsign tanhshrink threshold softmax log_softmax softmin normalize",
)
ACTIVATION_OPTIONS = {
    "threshold": {"threshold": 0.1, "value": 1.0},
    **{name: {"dim": -1} for name in ("softmax", "log_softmax", "softmin", "glu")},
}
FOURIER = words("fft ifft rfft hfft fft2 ifft2 rfft2 fftn ifftn rfftn fftshift ifftshift")
MATRICES = words(
    "cholesky det eigh eigvalsh inv lu lu_factor matrix_exp matrix_norm matrix_rank norm pinv qr slogdet ",
    "vector_norm cholesky_ex inv_ex svd eigvals",
)

NAMED = {
    **{f"torch.{name}": lambda d, name=name: getattr(torch, name)(positive(d, 3, 4) / 2) for name in UNARY},
    **{
        f"torch.{name}": lambda d, name=name: getattr(torch, name)(r(d, 3, 4), *((1,) if name in WITH_DIM else ()))
        for name in REDUCTIONS
    },
    **{f"special.{name}": lambda d, name=name: getattr(special, name)(positive(d, 3) / 2) for name in SPECIAL},
    **{
        f"F.{name}": lambda d, name=name: getattr(F, name)(r(d, 3, 4), **ACTIVATION_OPTIONS.get(name, {}))
        for name in ACTIVATIONS
    },
    **{f"fft.{name}": lambda d, name=name: getattr(fft, name)(r(d, 4, 4)) for name in FOURIER},
    **{f"linalg.{name}": lambda d, name=name: getattr(linalg, name)(spd(d)) for name in MATRICES},
}

PRODUCTS = {
    "mm, bmm, matmul, mv, dot": lambda d: (
        r(d, 2, 3) @ r(d, 3, 2),
        torch.bmm(r(d, 2, 2, 3), r(d, 2, 3, 2)),
        r(d, 2, 2, 3) @ r(d, 3),
        r(d, 2, 3).mv(r(d, 3)),
        r(d, 3).dot(r(d, 3)),
    ),
    "addmm, addmv, addbmm, baddbmm, addr": lambda d: (
        torch.addmm(r(d, 2, 2), r(d, 2, 3), r(d, 3, 2)),
        torch.addmv(r(d, 2), r(d, 2, 3), r(d, 3)),
        torch.addbmm(r(d, 2, 2), r(d, 2, 2, 3), r(d, 2, 3, 2)),
        torch.baddbmm(r(d, 2, 2, 2), r(d, 2, 2, 3), r(d, 2, 3, 2)),
        torch.addr(r(d, 2, 3), r(d, 2), r(d, 3)),
    ),
    "einsum, tensordot, inner, outer, kron": lambda d: (
        torch.einsum("bij,bkj->bik", r(d, 2, 2, 3), r(d, 2, 4, 3)),
        torch.tensordot(r(d, 2, 3), r(d, 3, 2), 1),
        torch.inner(r(d, 3), r(d, 3)),
        torch.outer(r(d, 2), r(d, 3)),
        torch.kron(r(d, 2, 2), r(d, 2, 2)),
    ),
    "addcmul, addcdiv, lerp": lambda d: (
        torch.addcmul(r(d, 3), r(d, 3), r(d, 3), value=2),
        torch.addcdiv(r(d, 3), r(d, 3), positive(d, 3)),
        torch.lerp(r(d, 3), r(d, 3), 0.3),
    ),
    "cross, cdist, pdist, vecdot, multi_dot, matrix_power": lambda d: (
        linalg.cross(r(d, 2, 3), r(d, 2, 3)),
        torch.cdist(r(d, 3, 2), r(d, 4, 2)),
        F.pdist(r(d, 3, 2)),
        linalg.vecdot(r(d, 3), r(d, 3)),
        linalg.multi_dot([r(d, 2, 3), r(d, 3, 2), r(d, 2, 2)]),
        linalg.matrix_power(r(d, 2, 2), 3),
    ),
    "solve, lstsq, triangular, cholesky_solve, lu_solve": lambda d: (
        linalg.solve(spd(d), r(d, 3, 2)),
        linalg.lstsq(spd(d), r(d, 3, 2)).solution.round(decimals=4),
        linalg.solve_triangular(spd(d).triu(), r(d, 3, 2), upper=True),
        torch.cholesky_solve(r(d, 3, 1), linalg.cholesky(spd(d))),
        linalg.lu_solve(*linalg.lu_factor(spd(d)), r(d, 3, 1)),
    ),
    "conv": lambda d: (
        F.conv1d(r(d, 2, 3, 8), r(d, 4, 3, 3), r(d, 4)),
        F.conv2d(r(d, 2, 3, 8, 8), r(d, 4, 3, 3, 3), stride=2, padding=1),
        F.conv3d(r(d, 1, 2, 4, 4, 4), r(d, 3, 2, 2, 2, 2)),
        F.conv_transpose2d(r(d, 1, 3, 4, 4), r(d, 3, 2, 2, 2)),
        F.conv2d(r(d, 1, 4, 6, 6), r(d, 4, 1, 3, 3), groups=4),
    ),
    "attention": lambda d: (
        F.scaled_dot_product_attention(*[r(d, 1, 2, 4, 8) for _ in range(3)], is_causal=True),
        F.scaled_dot_product_attention(*[r(d, 1, 2, 4, 8) for _ in range(3)], attn_mask=r(d, 4, 4)),
        F.scaled_dot_product_attention(*[r(d, 1, 2, 4, 8) for _ in range(3)], attn_mask=r(d, 4, 4) > -3),
    ),
    "linear, bilinear, embedding, embedding_bag": lambda d: (
        F.linear(r(d, 2, 3), r(d, 4, 3), r(d, 4)),
        F.bilinear(r(d, 2, 3), r(d, 2, 4), r(d, 5, 3, 4)),
        F.embedding(whole(d, 2, 2), r(d, 5, 3)),
        F.embedding_bag(whole(d, 4), r(d, 5, 3), torch.tensor([0, 2]).to(d)),
    ),
}

VARIOUS = {
    "sort, topk, kthvalue, msort, argsort": lambda d: (
        r(d, 5).sort(),
        r(d, 5).topk(2),
        r(d, 5).kthvalue(2),
        torch.msort(r(d, 5)),
        r(d, 5).argsort(descending=True),
    ),
    "unique, unique_consecutive": lambda d: (
        whole(d, 9).unique(return_inverse=True, return_counts=True),
        torch.unique_consecutive(whole(d, 9)),
        torch.unique(whole(d, 4, 2), dim=0),
    ),
    "bincount, histc, one_hot, repeat_interleave": lambda d: (
        torch.bincount(whole(d, 9)),
        torch.histc(r(d, 9), 4),
        F.one_hot(whole(d, 4), 5),
        torch.repeat_interleave(r(d, 3), whole(d, 3)),
    ),
    "quantile, nanquantile": lambda d: (
        torch.quantile(r(d, 9), 0.3),
        torch.quantile(r(d, 9), torch.tensor([0.1, 0.9]).to(d)),
        torch.nanquantile(r(d, 9), 0.5),
    ),
    "clamp, clip": lambda d: (
        r(d, 4).clamp(-1, 1),
        r(d, 4).clamp(min=0),
        r(d, 4).clamp(r(d, 4)),
        r(d, 4).clip(max=0.5),
    ),
    "isin, isclose, allclose, equal": lambda d: (
        torch.isin(whole(d, 4), whole(d, 2)),
        torch.isclose(r(d, 3), r(d, 3)),
        torch.tensor(torch.allclose(r(d, 3), r(d, 3)), device=d),
    ),
    "trapezoid, diff, gradient, cov, corrcoef": lambda d: (
        torch.trapezoid(r(d, 4)),
        torch.diff(r(d, 4)),
        torch.gradient(r(d, 4)),
        torch.cov(r(d, 2, 5)),
        torch.corrcoef(r(d, 2, 5)),
    ),
    "bitwise": lambda d: (
        whole(d, 3) & 1,
        whole(d, 3) | 2,
        whole(d, 3) ^ 3,
        ~whole(d, 3),
        whole(d, 3) << 1,
        whole(d, 3) >> 1,
    ),
    "logic": lambda d: (r(d, 3) > 0) & (r(d, 3) < 1) | ~(r(d, 3) == 0),
    "Python numbers": lambda d: (
        1 - r(d, 3),
        2 / positive(d, 3),
        2 ** r(d, 3),
        r(d, 3) // 0.5,
        r(d, 3) % 0.3,
        -r(d, 3),
        abs(r(d, 3)),
    ),
    "NumPy numbers": lambda d: (r(d, 3) * np.float64(2), r(d, 3) + np.float32(1)),
    "zero-dim CPU operands": lambda d: (
        r(d, 3) * torch.tensor(2.0),
        torch.tensor(2.0) - r(d, 3),
        r(d, 3).add_(torch.tensor(1)),
    ),
    "types": lambda d: (
        r(d, 3).double(),
        r(d, 3).half(),
        r(d, 3).bfloat16(),
        r(d, 3).int(),
        r(d, 3).bool(),
        r(d, 3).long(),
        r(d, 3).type(torch.float64),
    ),
    "promotion": lambda d: whole(d, 3) + r(d, 3).double(),
    "complex": lambda d: (r(d, 3).to(torch.complex64) * 1j).abs() + torch.view_as_complex(r(d, 3, 2)).conj().real,
    "stft, istft": lambda d: torch.istft(
        torch.stft(r(d, 1, 64), 16, window=torch.hann_window(16, device=d), return_complex=True),
        16,
        window=torch.hann_window(16, device=d),
    ),
    "irfft, fftfreq": lambda d: (fft.irfft(fft.rfft(r(d, 8))), fft.fftfreq(8, device=d)),
    "interpolate": lambda d: [
        F.interpolate(r(d, 1, 2, 4, 4), scale_factor=2, mode=m) for m in ("nearest", "bilinear", "bicubic", "area")
    ],
    "grid_sample, affine_grid": lambda d: F.grid_sample(
        r(d, 1, 2, 4, 4), F.affine_grid(r(d, 1, 2, 3), [1, 2, 4, 4], align_corners=False), align_corners=False
    ),
    "pad": lambda d: [F.pad(r(d, 1, 2, 4), (1, 1), mode=m) for m in ("constant", "reflect", "replicate", "circular")],
    "pool": lambda d: (
        F.max_pool2d(r(d, 1, 2, 4, 4), 2),
        F.avg_pool2d(r(d, 1, 2, 4, 4), 2),
        F.adaptive_avg_pool2d(r(d, 1, 2, 4, 4), 1),
        F.adaptive_max_pool1d(r(d, 1, 2, 4), 2),
        F.max_pool1d(r(d, 1, 2, 4), 2, return_indices=True),
        F.lp_pool1d(r(d, 1, 2, 4), 2, 2),
    ),
    "unfold, fold": lambda d: F.fold(F.unfold(r(d, 1, 2, 4, 4), 2), (4, 4), 2),
    "norms": lambda d: (
        F.layer_norm(r(d, 2, 3), (3,), r(d, 3), r(d, 3)),
        F.group_norm(r(d, 2, 4, 3), 2, r(d, 4), r(d, 4)),
        F.instance_norm(r(d, 2, 3, 4)),
        F.batch_norm(r(d, 4, 3), torch.zeros(3, device=d), torch.ones(3, device=d), r(d, 3), r(d, 3), training=True),
        F.local_response_norm(r(d, 1, 4, 3), 2),
    ),
    "dropout": lambda d: (
        F.dropout(r(d, 9)),
        F.dropout2d(r(d, 2, 3, 2, 2)),
        F.alpha_dropout(r(d, 9), training=True),
        F.feature_alpha_dropout(r(d, 2, 3), training=True),
    ),
    "gumbel_softmax": lambda d: F.gumbel_softmax(r(d, 2, 3), hard=True),
    "cosine_similarity, pairwise_distance": lambda d: (
        F.cosine_similarity(r(d, 2, 3), r(d, 2, 3)),
        F.pairwise_distance(r(d, 2, 3), r(d, 2, 3)),
    ),
    "logaddexp, hypot, atan2, gcd": lambda d: (
        torch.logaddexp(r(d, 3), r(d, 3)),
        torch.hypot(r(d, 3), r(d, 3)),
        torch.atan2(r(d, 3), r(d, 3)),
        torch.gcd(whole(d, 3), whole(d, 3)),
    ),
    "out=": lambda d: (
        torch.add(r(d, 3), 1, out=torch.empty(3, device=d)),
        torch.mm(r(d, 2, 2), r(d, 2, 2), out=torch.empty(2, 2, device=d)),
    ),
    "foreach": lambda d: (
        torch._foreach_add([r(d, 2), r(d, 3)], 1),
        torch._foreach_mul([r(d, 2)], [r(d, 2)]),
        torch._foreach_norm([r(d, 2)]),
    ),
    "in place": lambda d: r(d, 3).add_(1).mul_(2).sub_(r(d, 3)).div_(3).clamp_(-1, 1).relu_().sqrt_().zero_().fill_(2),
    "copy_, fill_, set_": lambda d: (
        r(d, 3).copy_(r("cpu", 3)),
        r(d, 3).fill_(torch.tensor(2.0)),
        torch.empty(0, device=d).set_(r(d, 3)),
    ),
    "apply of numbers": lambda d: torch.tensor([float(r(d, 1)), int(whole(d, 1)), bool(whole(d, 1))], device=d),
    "tolist, item": lambda d: torch.tensor([*r(d, 3).tolist(), r(d, 1).item()], device=d),
    "map over the CPU": lambda d: torch.tensor(np.sin(r(d, 3).cpu().numpy())).to(d),
    "sparse COO": lambda d: (
        torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device=d).to_dense(),
        torch.sparse.mm(torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device=d), r(d, 2, 2)),
        r(d, 3, 3).to_sparse().coalesce().values(),
    ),
    "sparse, transposed": lambda d: (
        r(d, 3, 4).relu().to_sparse().t() @ r(d, 3, 2),
        torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), device=d).t().coalesce().values(),
    ),
    "sparse CSR": lambda d: (
        r(d, 3, 3).relu().to_sparse_csr() @ r(d, 3, 2),
        r(d, 3, 3).relu().to_sparse_csr().to_dense(),
    ),
    "sparse built on the GPU": lambda d: torch.sparse_coo_tensor(whole(d, 2, 3, high=2), r(d, 3), (2, 2)).to_dense(),
    "nested": lambda d: torch.nested.to_padded_tensor(torch.nested.nested_tensor([r(d, 2, 3), r(d, 1, 3)]), 0.0),
    "nested, jagged": lambda d: (
        torch.nested.as_nested_tensor([r(d, 2, 3), r(d, 1, 3)], layout=torch.jagged).mul(2).values()
    ),
    "conj, resolve_conj": lambda d: torch.view_as_complex(r(d, 3, 2)).conj().resolve_conj(),
    "autocast off and on": lambda d: _autocast(d),
    "cummulative over booleans": lambda d: (r(d, 4) > 0).cumsum(0),
    "segment by scatter": lambda d: torch.zeros(3, device=d).index_add_(0, whole(d, 6, high=3), r(d, 6)),
    "renorm, dist": lambda d: (torch.renorm(r(d, 2, 3), 2, 0, 1.0), torch.dist(r(d, 3), r(d, 3))),
    "ctc_loss": lambda d: F.ctc_loss(
        r(d, 6, 2, 4).log_softmax(2),
        torch.tensor([[1, 2], [3, 1]]).to(d),
        torch.tensor([6, 6]),
        torch.tensor([2, 2]),
    ),
    # While a mode listens to operators, torch computes the vectors too, which changes the last bit.
    "svdvals, cond": lambda d: (
        linalg.svdvals(spd(d)).round(decimals=3),
        linalg.cond(spd(d)).round(decimals=3),
    ),
    "geqrf, householder, ormqr": lambda d: (
        torch.geqrf(r(d, 3, 3)),
        linalg.householder_product(*torch.geqrf(r(d, 3, 3))),
    ),
    "distributions": lambda d: _distributions(d),
}


def _autocast(device):
    x, w = r(device, 2, 3), r(device, 3, 2)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        low = x @ w
        with torch.autocast(torch.device(device).type, enabled=False):
            high = x @ w
    return low, high


def _distributions(device):
    normal = torch.distributions.Normal(r(device, 3), positive(device, 3))
    classes = torch.distributions.Categorical(logits=r(device, 2, 3))
    sample = normal.rsample()
    return (
        sample,
        normal.log_prob(sample),
        classes.sample(),
        classes.entropy(),
        torch.distributions.kl_divergence(normal, normal),
    )


TABLE = {**NAMED, **PRODUCTS, **VARIOUS}


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)


def test_the_sample_is_wide():
    assert len(TABLE) > 200

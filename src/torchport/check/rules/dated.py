"""What torch once had, or has under another name: the table behind the rules on its dated interfaces."""

from __future__ import annotations

from dataclasses import dataclass

from torchport.text import mark

REMOVED, DEPRECATED, RENAMED = "removed", "deprecated", "renamed"


@dataclass(frozen=True, slots=True)
class Dated:
    """A dotted name, or a module with all that is in it where it ends with a dot.

    ``since`` is the torch that deprecated it, ``gone`` the one that took it away. ``new`` is the name that does the
    same; ``form``, for calls with that many plain arguments, the whole text: ``{0}`` is the first, ``{args}`` all.
    ``note`` says what else to write.
    """

    name: str
    kind: str
    since: str
    gone: str = ""
    new: str = ""
    form: str = ""
    arguments: int | None = None
    note: str = ""
    safe: bool = False


def _renamed(name: str, new: str, since: str) -> Dated:
    return Dated(name, RENAMED, since, new=new, safe=True)


_F, _U, _CUDA, _VT = "torch.nn.functional", "torch.nn.utils", "torch.cuda", "torchvision.transforms"

TABLE: tuple[Dated, ...] = (
    # Linear algebra moved to torch.linalg.
    Dated(
        "torch.symeig", REMOVED, "1.9", "2.0", note=mark('torch.linalg.eigh(A, UPLO="U"), or eigvalsh for the values')
    ),
    Dated("torch.eig", REMOVED, "1.9", "1.13", note=mark("torch.linalg.eig(A), whose results are complex")),
    Dated("torch.solve", REMOVED, "1.9", "1.13", note=mark("torch.linalg.solve(A, B): other order, one result")),
    Dated("torch.gesv", REMOVED, "1.1", "1.2", note=mark("torch.linalg.solve(A, B): other order, one result")),
    Dated("torch.lstsq", REMOVED, "1.9", "1.13", note=mark("torch.linalg.lstsq(A, B): other order")),
    Dated("torch.gels", REMOVED, "1.2", "1.3", note=mark("torch.linalg.lstsq(A, B): other order")),
    Dated("torch.trtrs", REMOVED, "1.1", "1.2", note="torch.linalg.solve_triangular(A, B, upper=True)"),
    Dated("torch.potrf", REMOVED, "1.1", "1.2", note="torch.linalg.cholesky(A, upper=True)"),
    Dated("torch.potri", REMOVED, "1.1", "1.2", note="torch.cholesky_inverse(L)"),
    Dated("torch.potrs", REMOVED, "1.1", "1.2", note="torch.cholesky_solve(B, L)"),
    Dated("torch.btrifact", REMOVED, "1.1", "1.2", note="torch.linalg.lu_factor(A)"),
    Dated("torch.btrisolve", REMOVED, "1.1", "1.2", note="torch.linalg.lu_solve(LU, pivots, B)"),
    Dated(
        "torch.matrix_rank",
        REMOVED,
        "1.9",
        "1.13",
        form="{linalg}.matrix_rank({0})",
        arguments=1,
        safe=True,
        note="torch.linalg.matrix_rank(A)",
    ),
    # Fourier transforms moved to torch.fft.
    Dated("torch.rfft", REMOVED, "1.7", "1.8", note=mark("torch.fft.rfft, or rfftn for several dimensions")),
    Dated("torch.irfft", REMOVED, "1.7", "1.8", note=mark("torch.fft.irfft, or irfftn for several dimensions")),
    Dated("torch.ifft", REMOVED, "1.7", "1.8", note=mark("torch.fft.ifft, of a complex tensor")),
    Dated("torch.fft()", REMOVED, "1.7", "1.8", note=mark("torch.fft.fft, of a complex tensor")),
    # Others that are gone.
    Dated("torch.set_deterministic", REMOVED, "1.8", "1.11", new="torch.use_deterministic_algorithms", safe=True),
    Dated(
        "torch.is_deterministic", REMOVED, "1.8", "1.11", new="torch.are_deterministic_algorithms_enabled", safe=True
    ),
    Dated("torch._six.", REMOVED, "1.13", "2.0", note=mark("str, int, math.inf and collections.abc of Python itself")),
    Dated("torch.legacy.", REMOVED, "0.4", "0.4", note=mark("the layers of torch.nn")),
    Dated("torch.utils.ffi.", REMOVED, "0.4", "1.0", note="torch.utils.cpp_extension"),
    Dated("torch.nn._functions.", REMOVED, "0.4", "1.0", note="torch.nn.functional"),
    Dated("torch.nn.backends.", REMOVED, "1.2", "1.5", note="torch.nn.functional"),
    Dated("torch.distributed.deprecated.", REMOVED, "1.0", "1.2", note="torch.distributed"),
    Dated("torchvision.models.utils.", REMOVED, "1.10", "1.12", note="torch.hub.load_state_dict_from_url"),
    Dated(f"{_VT}.functional_tensor.", REMOVED, "2.0", "2.2", note="torchvision.transforms.functional"),
    Dated("torchvision.models.resnet.model_urls", REMOVED, "1.12", "2.0", note=mark("the weights of the model, .url")),
    Dated("torchvision.models.vgg.model_urls", REMOVED, "1.12", "2.0", note=mark("the weights of the model, .url")),
    Dated(
        "torchvision.models.densenet.model_urls", REMOVED, "1.12", "2.0", note=mark("the weights of the model, .url")
    ),
    Dated(
        "torchtext.legacy.",
        REMOVED,
        "1.8",
        "1.11",
        note=mark("a data set of torch.utils.data, with a tokenizer of its own"),
    ),
    Dated("torchtext.data.Field", REMOVED, "1.8", "1.11", note=mark("a tokenizer and a vocabulary of your own")),
    Dated("torchtext.data.LabelField", REMOVED, "1.8", "1.11", note=mark("a dictionary of the labels")),
    Dated("torchtext.data.TabularDataset", REMOVED, "1.8", "1.11", note=mark("a data set of torch.utils.data")),
    Dated("torchtext.data.BucketIterator", REMOVED, "1.8", "1.11", note="torch.utils.data.DataLoader"),
    Dated("torchtext.data.Iterator", REMOVED, "1.8", "1.11", note="torch.utils.data.DataLoader"),
    Dated(f"{_VT}.Scale", REMOVED, "0.4", "1.11", new=f"{_VT}.Resize", safe=True),
    Dated(f"{_VT}.RandomSizedCrop", REMOVED, "0.4", "1.11", new=f"{_VT}.RandomResizedCrop", safe=True),
    # There still, each call with a warning.
    Dated(
        "torch.cholesky",
        DEPRECATED,
        "1.8",
        form="{linalg}.cholesky({0})",
        arguments=1,
        safe=True,
        note="torch.linalg.cholesky(A)",
    ),
    Dated("torch.qr", DEPRECATED, "1.8", form="{linalg}.qr({0})", arguments=1, safe=True, note="torch.linalg.qr(A)"),
    Dated(
        "torch.svd",
        DEPRECATED,
        "1.9",
        note=mark("torch.linalg.svd(A, full_matrices=False), which gives V already transposed"),
    ),
    Dated("torch.lu", DEPRECATED, "1.13", note="torch.linalg.lu_factor(A)"),
    Dated("torch.lu_solve", DEPRECATED, "1.13", note=mark("torch.linalg.lu_solve(LU, pivots, B): other order")),
    Dated(
        "torch.triangular_solve",
        DEPRECATED,
        "1.11",
        note=mark("torch.linalg.solve_triangular(A, B, upper=True): one result"),
    ),
    Dated(
        "torch.chain_matmul",
        DEPRECATED,
        "1.9",
        form="{linalg}.multi_dot([{args}])",
        safe=True,
        note="torch.linalg.multi_dot([…])",
    ),
    Dated("torch.norm", DEPRECATED, "1.7", note=mark("torch.linalg.vector_norm or matrix_norm")),
    Dated("torch.range", DEPRECATED, "0.4", note=mark("torch.arange, which leaves the end out")),
    Dated(
        f"{_U}.weight_norm",
        DEPRECATED,
        "2.0",
        note=mark("torch.nn.utils.parametrizations.weight_norm: other keys in files"),
    ),
    Dated(f"{_F}.upsample_bilinear", DEPRECATED, "0.4", note='interpolate(…, mode="bilinear", align_corners=True)'),
    Dated(f"{_F}.upsample_nearest", DEPRECATED, "0.4", note='interpolate(…, mode="nearest")'),
    Dated(
        "torch.nn.UpsamplingBilinear2d", DEPRECATED, "0.4", note='nn.Upsample(…, mode="bilinear", align_corners=True)'
    ),
    Dated("torch.nn.UpsamplingNearest2d", DEPRECATED, "0.4", note='nn.Upsample(…, mode="nearest")'),
    Dated("torch.set_default_tensor_type", DEPRECATED, "2.1", note="torch.set_default_dtype, torch.set_default_device"),
    Dated("torch.backends.cuda.sdp_kernel", DEPRECATED, "2.3", note="torch.nn.attention.sdpa_kernel(backends)"),
    Dated("torch.testing.assert_allclose", DEPRECATED, "1.12", note="torch.testing.assert_close"),
    Dated(f"{_U}.stateless.functional_call", DEPRECATED, "2.0", new="torch.func.functional_call", safe=True),
    Dated("functorch.vmap", DEPRECATED, "2.0", note="torch.vmap"),
    Dated("functorch.grad", DEPRECATED, "2.0", note="torch.func.grad"),
    Dated("torch.nn.Container", DEPRECATED, "1.0", note="torch.nn.Module"),
    Dated(
        ".register_backward_hook", DEPRECATED, "1.8", note=mark("register_full_backward_hook, which sees all gradients")
    ),
    # The same thing under another name.
    _renamed("torch.ger", "torch.outer", "1.7"),
    _renamed(f"{_F}.sigmoid", "torch.sigmoid", "0.4"),
    _renamed(f"{_F}.tanh", "torch.tanh", "0.4"),
    _renamed(f"{_F}.upsample", f"{_F}.interpolate", "0.4"),
    _renamed("torch.nn.NLLLoss2d", "torch.nn.NLLLoss", "0.4"),
    _renamed(f"{_U}.clip_grad_norm", f"{_U}.clip_grad_norm_", "0.4"),
    _renamed(f"{_CUDA}.memory_cached", f"{_CUDA}.memory_reserved", "1.4"),
    _renamed(f"{_CUDA}.max_memory_cached", f"{_CUDA}.max_memory_reserved", "1.4"),
)

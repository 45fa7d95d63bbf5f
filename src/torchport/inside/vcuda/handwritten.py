"""Checks that CUDA operators make by hand, with their own words; and operators that may mix devices.

One function a rule, registered in ``RULES`` by the operator's name without overload.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchport.inside.vcuda.operators import Operator
from torchport.inside.vcuda.rules import (
    HOST,
    Clash,
    Operand,
    Verdict,
    device_name,
    exact_same,
    first_card,
    ordered,
    tensor_iterator,
    two_devices_text,
)

Rule = Callable[[Operator, list[Operand]], Verdict]


def _named(found: list[Operand], name: str) -> Operand | None:
    return next((operand for operand in found if operand.name == name), None)


def type_string(operand: Operand) -> str:
    """``torch.cuda.FloatTensor``, as Tensor.type() prints it."""
    name = _TYPE_NAMES.get(operand.tensor.dtype, "FloatTensor")
    return f"torch.cuda.{name}" if operand.device >= 0 else f"torch.{name}"


_TYPE_NAMES = {
    torch.float32: "FloatTensor",
    torch.float64: "DoubleTensor",
    torch.float16: "HalfTensor",
    torch.bfloat16: "BFloat16Tensor",
    torch.int64: "LongTensor",
    torch.int32: "IntTensor",
    torch.int16: "ShortTensor",
    torch.int8: "CharTensor",
    torch.uint8: "ByteTensor",
    torch.bool: "BoolTensor",
    torch.complex64: "ComplexFloatTensor",
    torch.complex128: "ComplexDoubleTensor",
}


def any_devices(operator: Operator, found: list[Operand]) -> Verdict:
    """Copies: every pair of devices is legal, the results are on the device of what is written."""
    written = next((operand for operand in found if operand.out), found[0])
    return Verdict(written.device)


def index(operator: Operator, found: list[Operand]) -> Verdict:
    """``x[i]``: indices on the host are copied to the device of x; indices on a card need x there."""
    self = found[0]
    for operand in found[1:]:
        if operand.device not in (HOST, self.device):
            text = (
                "indices should be either on cpu or on the same device as the indexed tensor "
                f"({device_name(self.device)})"
            )
            # Healed as if what is indexed were on the card: what follows is meant to run there.
            return Verdict(operand.device, Clash(text, operand, id="R103", remedy="to-cpu-or-move-indexed"))
    return Verdict(self.device)


def index_put(operator: Operator, found: list[Operand]) -> Verdict:
    """``x[i] = v``: indices may be anywhere, v on the device of x unless it is one number on the host."""
    self, value = found[0], _named(found, "values")
    if value is None or value.device == self.device:
        return Verdict(self.device)
    if value.device == HOST and value.tensor.numel() == 1 and (value.tensor.dim() == 0 or _masked(found)):
        return Verdict(self.device)
    if torch.are_deterministic_algorithms_enabled():
        text = f"expected device {device_name(self.device)} but got device {device_name(value.device)} for value tensor"
    else:
        card = self if self.device >= 0 else value
        other = value if card is self else self
        text = two_devices_text(card.device, other.device)
    return Verdict(self.device, Clash(text, value))


def index_put_accumulate(operator: Operator, found: list[Operand]) -> Verdict:
    """The sorting kernel, used for ``accumulate=True`` and in deterministic mode, has its own words."""
    verdict = index_put(operator, found)
    if verdict.clash is not None:
        self, value = found[0], verdict.clash.offender
        assert value is not None
        verdict.clash.text = (
            f"expected device {device_name(self.device)} but got device {device_name(value.device)} for value tensor"
        )
    return verdict


def _masked(found: list[Operand]) -> bool:
    return any(operand.tensor.dtype in (torch.bool, torch.uint8) for operand in found if operand.name == "indices")


def convolution(operator: Operator, found: list[Operand]) -> Verdict:
    """Types of input, weight and bias are compared as strings; cards are only told apart later, by cuDNN."""
    result = first_card(found)
    first = _named(found, "input") or found[0]
    weight = _named(found, "weight")
    bias = _named(found, "bias")
    for role, other in (("weight", weight), ("bias", bias)):
        if other is None or (other.device >= 0) == (first.device >= 0):
            continue
        text = f"Input type ({type_string(first)}) and {role} type ({type_string(other)}) should be the same"
        if role == "weight" and first.device == HOST and _onednn(first, other):
            text += " or input should be a MKLDNN tensor and weight is a dense tensor"
        return Verdict(result, Clash(text, other if other.device == HOST else first))
    return ordered("wrapper_CUDA__cudnn_convolution", ("input", "weight"), found)


def _onednn(first: Operand, weight: Operand) -> bool:
    """Whether the CPU would choose oneDNN for this convolution (aten/src/ATen/native/Convolution.cpp)."""
    x, w = first.tensor, weight.tensor
    return (
        torch.backends.mkldnn.is_available()
        and x.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and x.numel() != 0
        and (x.size(0) > 1 or w.size(-1) > 3 or (w.dim() > 3 and w.size(-2) > 3) or x[0].numel() > 20480)
    )


def masked_fill(operator: Operator, found: list[Operand]) -> Verdict:
    """The mask must be with self; a value may be one number on the host."""
    self, mask, value = found[0], _named(found, "mask"), _named(found, "value")
    if mask is not None and mask.device != self.device:
        text = (
            "expected self and mask to be on the same device, but got mask on "
            f"{device_name(mask.device)} and self on {device_name(self.device)}"
        )
        return Verdict(first_card(found), Clash(text, mask if mask.device == HOST else self))
    if value is not None and value.device not in (HOST, self.device):
        return Verdict(self.device, Clash("masked_fill_: Expected inputs to be on same device", self))
    return Verdict(self.device)


def search_sorted(operator: Operator, found: list[Operand]) -> Verdict:
    """The generated check looks at boundaries and values; the sorter is compared by hand."""
    verdict = exact_same(operator, found)
    bounds, sorter = found[0], _named(found, "sorter")
    if verdict.clash is None and sorter is not None and sorter.device != bounds.device:
        text = (
            "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor "
            f"device type {_type(sorter)} and input value tensor device type {_type(bounds)}"
        )
        verdict.clash = Clash(text, sorter if sorter.device == HOST else bounds)
    return verdict


def _type(operand: Operand) -> str:
    return "cuda" if operand.device >= 0 else "cpu"


def pack_padded(operator: Operator, found: list[Operand]) -> Verdict:
    """Lengths of a packed sequence stay on the host by rule."""
    lengths = _named(found, "lengths")
    if lengths is not None and lengths.device >= 0:
        name = type_string(lengths).rsplit(".", 1)[1].removesuffix("Tensor")
        text = (
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.tensor.dim()}D {device_name(lengths.device)} {name} tensor"
        )
        return Verdict(found[0].device, Clash(text, lengths, id="R104", remedy="to-cpu"))
    return Verdict(found[0].device)


def where(operator: Operator, found: list[Operand]) -> Verdict:
    """Each of the three may be one number on the host."""
    common = first_card(found)
    for operand in found:
        if operand.device != common and not (operand.host_scalar and not operand.out):
            return Verdict(common, Clash(two_devices_text(common, operand.device), operand))
    return Verdict(common)


def set_storage(operator: Operator, found: list[Operand]) -> Verdict:
    """A tensor cannot take over a storage on another device."""
    self, source = found[0], found[-1]
    if self.device == source.device or self.tensor.numel() == 0:
        return Verdict(source.device)
    text = set_storage_text(self.device, source.device)
    return Verdict(source.device, Clash(text, self))


def set_storage_text(own: int, other: int) -> str:
    """What set_ says of a storage on another device."""
    return (
        f'Attempted to set the storage of a tensor on device "{device_name(own)}" to a storage on '
        f'different device "{device_name(other)}".  This is no longer allowed; the devices must match.'
    )


def foreach(operator: Operator, found: list[Operand]) -> Verdict:
    """Lists that mix devices take the slow path, one tensor at a time, each under TensorIterator's rule."""
    groups = [operand.group for operand in found if operand.name == found[0].name]
    for group in groups:
        members = [o for o in found if o.group == group or (o.name in _SHARED and o.group == 0)]
        verdict = tensor_iterator(operator, members)
        if verdict.clash is not None:
            return verdict
    return Verdict(MIXED)


MIXED = -3  # results follow the operand of the same position
_SHARED = ("weight", "scalar", "tensor")  # foreach arguments that are one tensor for the whole list


def as_another(wrapper: str, *names: str) -> Rule:
    """An operator that the CPU does by another name than CUDA."""
    return lambda operator, found: ordered(wrapper, names, found)


def embedding(operator: Operator, found: list[Operand]) -> Verdict:
    """CUDA reaches embedding through index_select, whose argument names it prints."""
    names = {"weight": "self", "indices": "index"}
    return ordered("wrapper_CUDA__index_select", ("self", "index"), _renamed(found, names))


_BATCH_NORM = ("input", "weight", "bias", "running_mean", "running_var")


def batch_norm(operator: Operator, found: list[Operand]) -> Verdict:
    """cuDNN takes batches of at least three dimensions with all of their parameters; the rest is torch's own kernel."""
    whole = {operand.name for operand in found} >= set(_BATCH_NORM) and found[0].tensor.dim() >= 3
    return ordered("wrapper_CUDA__cudnn_batch_norm" if whole else "wrapper_CUDA__native_batch_norm", _BATCH_NORM, found)


def matrix_vector(operator: Operator, found: list[Operand]) -> Verdict:
    """``mv`` makes its result beside the vector, then calls addmv_ on it."""
    vector = _named(found, "vec") or found[-1]
    renamed = [Operand("result", vector.tensor, vector.device), *found]
    names = {"result": "self", "self": "mat", "vec": "vec"}
    return ordered("wrapper_CUDA_addmv_", ("self", "mat", "vec"), _renamed(renamed, names))


def attention(operator: Operator, found: list[Operand]) -> Verdict:
    """The CPU's flash kernel stands for CUDA's memory-efficient one."""
    renamed = _renamed(found, {"attn_mask": "attn_bias"})
    wrapper = "wrapper_CUDA___scaled_dot_product_efficient_attention"
    return ordered(wrapper, ("query", "key", "value", "attn_bias"), renamed)


def reversed_operands(operator: Operator, found: list[Operand]) -> Verdict:
    """``rsub(a, b)`` is ``sub(b, a)``."""
    return tensor_iterator(operator, found[::-1])


def fill(operator: Operator, found: list[Operand]) -> Verdict:
    """One number may come from any device."""
    return Verdict(found[0].device) if found[-1].tensor.dim() == 0 else tensor_iterator(operator, found)


def checked_out(operator: Operator, found: list[Operand]) -> Verdict:
    """Structured operators that are no TensorIterator look at ``out=`` themselves."""
    verdict = tensor_iterator(operator, found)
    inputs = [operand for operand in found if not operand.out]
    out = next((operand for operand in found if operand.out), None)
    if verdict.clash is not None and out is not None and inputs and out.device != inputs[0].device:
        verdict.clash.text = (
            f"Expected out tensor to have device {device_name(inputs[0].device)}, "
            f"but got {device_name(out.device)} instead"
        )
    return verdict


def _renamed(found: list[Operand], names: dict[str, str]) -> list[Operand]:
    return [Operand(names.get(o.name, o.name), o.tensor, o.device, o.out, o.group) for o in found]


_REDUCTIONS = frozenset(
    {"sum", "nansum", "mean", "prod", "cumsum", "cumprod", "max", "min", "all", "any", "norm", "std", "var"}
)

RULES: dict[str, Rule] = {
    "aten::copy_": any_devices,
    "aten::copy": any_devices,
    "aten::_to_copy": any_devices,
    "aten::_copy_from": any_devices,
    "aten::_foreach_copy_": lambda operator, found: Verdict(MIXED),
    "aten::index": index,
    "aten::_unsafe_index": index,
    "aten::index_put": index_put,
    "aten::index_put_": index_put,
    "aten::_index_put_impl_": index_put,
    "aten::_unsafe_index_put": index_put,
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::convolution_overrideable": convolution,
    "aten::mkldnn_convolution": convolution,
    "aten::masked_fill": masked_fill,
    "aten::masked_fill_": masked_fill,
    "aten::searchsorted": search_sorted,
    "aten::_pack_padded_sequence": pack_padded,
    "aten::where": where,
    "aten::set_": set_storage,
    "aten::embedding": embedding,
    "aten::native_batch_norm": batch_norm,
    "aten::_native_batch_norm_legit": batch_norm,
    "aten::_native_batch_norm_legit_functional": batch_norm,
    "aten::_scaled_dot_product_flash_attention_for_cpu": attention,
    "aten::stack": as_another("wrapper_CUDA_cat", "tensors"),
    "aten::mv": matrix_vector,
    "aten::masked_scatter": as_another("wrapper_CUDA__masked_scatter_", "self", "mask", "source"),
    "aten::complex": as_another("wrapper_CUDA_out_complex_out", "real", "imag"),
    "aten::polar": as_another("wrapper_CUDA_out_polar_out", "abs", "angle"),
    "aten::rsub": reversed_operands,
    "aten::fill": fill,
    "aten::fill_": fill,
    "aten::select_scatter": any_devices,
    "aten::slice_scatter": any_devices,
    "aten::diagonal_scatter": any_devices,
    "aten::as_strided_scatter": any_devices,
    "aten::_use_cudnn_ctc_loss": any_devices,
    "aten::_ctc_loss_backward": as_another("wrapper_CUDA___ctc_loss_backward", "grad", "log_probs", "targets"),
    "aten::_ctc_loss": as_another("wrapper_CUDA___ctc_loss", "log_probs", "targets"),
}


def rule_for(operator: Operator) -> Rule:
    """The rule of an operator: its own, the generated check, or TensorIterator's."""
    own = RULES.get(operator.packet)
    if own is not None:
        return own
    if operator.check is not None and operator.check.exact_same:
        return exact_same
    if operator.out and operator.packet.removeprefix("aten::") in _REDUCTIONS:
        return checked_out
    if operator.packet.startswith("aten::_foreach_"):
        return foreach
    return tensor_iterator

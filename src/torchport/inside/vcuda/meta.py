"""Shapes only: tensors on a virtual card are ``meta`` tensors and hold no numbers.

What depends on numbers gets a stand-in, noted once a place (R505): ``item()`` gives one, ``nonzero`` and masks
select everything.
"""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.operators import Operator

is_meta = torch._C.TensorBase.is_meta.__get__  # not the face's answer


def stand_in(machine: Machine, tensor: Any) -> Any:
    """The value of ``item()`` on a tensor without numbers: one, in the tensor's own type."""
    machine.faults.remark("R505", what="item", text="item() of a tensor without numbers gives 1")
    if tensor.dtype is torch.bool:
        return True
    return 1.0 if tensor.is_floating_point() else 1


def _without_numbers(value: Any) -> Any:
    """Operands of a call that runs on a card, healed ones of the host too; single numbers stay."""
    if isinstance(value, torch.Tensor):
        if is_meta(value) or value.dim() == 0:
            return value
        return torch._C._VariableFunctions.empty_like(value, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_without_numbers(item) for item in value)
    return value


def copy_(target: Any, source: Any, written: int, origin: int) -> Any:
    """A copy to a card drops the numbers, one to the host finds none and leaves what is there."""
    return target


def run(machine: Machine, operator: Operator, args: Any, kwargs: Any) -> Any:
    """Runs an operator on tensors without numbers; data-dependent shapes are taken at their largest."""
    if operator.packet not in _READ_ON_HOST:
        args = _without_numbers(tuple(args))
        kwargs = {name: _without_numbers(value) for name, value in kwargs.items()}
    if (operator.factory and "device" in kwargs) or (
        operator.factory and not any(isinstance(arg, torch.Tensor) for arg in args)
    ):
        kwargs = {**kwargs, "device": torch.device("meta")}
    largest: Any = _LARGEST.get(operator.packet)
    if largest is not None:
        machine.faults.remark(
            "R505", what=operator.packet, text="a shape that depends on numbers: taken at its largest"
        )
        return largest(*args, **kwargs)
    if operator.packet in _INDEXING and any(_is_mask(index) for index in args[1]):
        machine.faults.remark("R505", what=operator.packet, text="a mask without numbers: taken as all true")
        return _masked(operator, args)
    if operator.packet in _SHAPES:
        return _SHAPES[operator.packet](*args, **kwargs)
    machine.local.raw += 1
    try:
        return operator.func(*args, **kwargs)
    finally:
        machine.local.raw -= 1


def _nonzero(tensor: Any) -> Any:
    return _empty((tensor.numel(), tensor.dim()), torch.int64)


def _masked_select(tensor: Any, mask: Any) -> Any:
    return _empty((torch.broadcast_shapes(tensor.shape, mask.shape).numel(),), tensor.dtype)


def _empty(size: Any, dtype: Any) -> Any:
    return torch._C._VariableFunctions.empty(size, dtype=dtype, device="meta")


_LARGEST = {
    "aten::nonzero": _nonzero,
    "aten::masked_select": _masked_select,
    "aten::_unique2": lambda t, *rest, **kw: (
        _empty((t.numel(),), t.dtype),
        _empty(tuple(t.shape), torch.int64),
        _empty((t.numel(),), torch.int64),
    ),
    "aten::equal": lambda a, b: True,
}


# Lengths of packed sequences are numbers of the host, whatever the sequences are.
_READ_ON_HOST = frozenset({"aten::_pack_padded_sequence", "aten::_pad_packed_sequence"})

_INDEXING = frozenset(
    f"aten::{name}"
    for name in ("index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put")
)


def _is_mask(index: Any) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _masked(operator: Operator, args: Any) -> Any:
    """``x[mask]`` with all of x selected; what is written there changes no shape."""
    if "put" in operator.packet:
        return args[0] if operator.packet.endswith("_") else _empty(tuple(args[0].shape), args[0].dtype)
    positions = []
    for index in args[1]:
        positions += [_empty((index.numel(),), torch.int64)] * index.dim() if _is_mask(index) else [index]
    return operator.func(args[0], positions)


def _attention(query: Any, *rest: Any) -> Any:
    batch, length, _ = query.shape
    need_weights, averaged = (rest[position] if position < len(rest) else True for position in (9, 10))
    heads = () if averaged else (rest[3],)
    weights = (batch, *heads, length, length) if need_weights else (0,)
    return _empty(tuple(query.shape), query.dtype), _empty(weights, query.dtype)


# What layers of attention run in evaluation; older torch (2.8) knows no shapes for it.
_SHAPES: dict[str, Any] = {
    name: shapes
    for name, shapes in {
        "aten::_native_multi_head_attention": _attention,
        "aten::_transformer_encoder_layer_fwd": lambda x, *rest, **options: _empty(tuple(x.shape), x.dtype),
    }.items()
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "Meta")
}


def host_copy(tensor: Any) -> Any:
    """What ``cpu()`` of a tensor without numbers gives: zeros."""
    result = torch._C._VariableFunctions.zeros(tuple(tensor.shape), dtype=tensor.dtype, device="cpu")
    return result


def is_virtual(tensor: Any) -> bool:
    """Whether a tensor is one of ours without numbers."""
    return bool(is_meta(tensor)) and tags.device_of(tensor) >= 0

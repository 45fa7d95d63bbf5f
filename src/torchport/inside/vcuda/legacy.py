"""``torch.cuda.FloatTensor`` and its kin: constructors, ``isinstance``, ``x.type(…)``, the default type."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


class TensorType(type):
    """The class of legacy tensor types. A tensor is an instance by what it is now, not by how it was made."""

    dtype: torch.dtype
    layout: torch.layout
    is_cuda: bool
    is_sparse: bool

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
            and instance.is_cuda is cls.is_cuda
        )

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def tensor_type(space: str, name: str, call: Any) -> TensorType:
    """The type ``torch{space}.{name}``, whose call is ``call``."""
    sparse = space.endswith(".sparse")
    members = {
        "__new__": lambda cls, *args, **kwargs: call(*args, **kwargs),
        "__module__": f"torch{space}",
        "dtype": _DTYPES[name],
        "layout": torch.sparse_coo if sparse else torch.strided,
        "is_cuda": space.startswith(".cuda"),
        "is_sparse": sparse,
    }
    return TensorType(name, (), members)


def parse(wanted: Any) -> tuple[torch.dtype, bool] | None:
    """(dtype, on a card) of a legacy type, its string or a dtype; None for anything else."""
    if isinstance(wanted, TensorType):
        return wanted.dtype, wanted.is_cuda
    if isinstance(wanted, str):
        space, _, name = wanted.rpartition(".")
        if space in ("torch", "torch.cuda") and name in _DTYPES:
            return _DTYPES[name], space == "torch.cuda"
        return None
    if type(wanted).__name__ == "tensortype":
        return wanted.dtype, wanted.is_cuda
    return None


def install(patches: Patches, machine: Machine) -> None:
    """Types of the card, and types of the host that do not take a tensor of the card for their own."""
    for name in _DTYPES:
        patches.set(torch.cuda, name, tensor_type(".cuda", name, _on_card(machine, name)))
        patches.set(torch, name, tensor_type("", name, _on_host(machine, name, getattr(torch, name))))
        if hasattr(torch.cuda.sparse, name):
            call = _sparse_on_card(name)
            patches.set(torch.cuda.sparse, name, tensor_type(".cuda.sparse", name, call))
    machine.convert_type = _convert
    _default_type(patches, machine)


def _on_card(machine: Machine, name: str) -> Any:
    """``torch.cuda.FloatTensor(2, 3)``, ``(…data…)``, ``(size)``, ``(tensor of that type)``."""
    dtype = _DTYPES[name]

    def make(*args: Any, device: Any = None, size: Any = None) -> Any:
        where = torch.device("cuda", machine.current) if device is None else torch.device(device)
        if size is not None:
            args = (torch.Size(size),)
        first = args[0] if args else torch.Size([0])
        if isinstance(first, torch.Tensor) and len(args) == 1:
            return _alias(first, name)
        if isinstance(first, (int, torch.Size)):
            shape = args if isinstance(first, int) else first
            return torch.empty(shape, dtype=dtype, device=where)
        return torch.tensor(first, dtype=dtype, device=where)

    return make


def _alias(tensor: torch.Tensor, name: str) -> torch.Tensor:
    expected = f"torch.cuda.{name}"
    if tensor.type() != expected:
        raise TypeError(f"expected {expected} (got {tensor.type()})")
    return tensor.detach()


def _on_host(machine: Machine, name: str, original: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        tag = tags.tag_of(result)
        if tag is None:
            tags.put(machine, result, tags.HOST, f"torch.{name}")
        elif not tag.origin.op.startswith("torch."):
            tag.origin.op = f"torch.{name}"
        return result

    return make


def _sparse_on_card(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return torch.sparse_coo_tensor(*args, dtype=_DTYPES[name], device="cuda", **kwargs)

    return make


def _convert(tensor: Any, wanted: Any, non_blocking: bool = False) -> Any:
    """``x.type(wanted)``: a type says where, a dtype leaves the tensor where it is."""
    if isinstance(wanted, torch.dtype):
        return tensor.to(wanted, non_blocking=non_blocking)
    found = parse(wanted)
    if found is None:
        name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", wanted)
        raise ValueError(f"invalid type: {name!r}")
    dtype, on_card = found
    device = "cpu"
    if on_card:
        device = tensor.device if tensor.is_cuda else "cuda"
    return tensor.to(device, dtype, non_blocking=non_blocking)


def _default_type(patches: Patches, machine: Machine) -> None:
    original = torch.set_default_tensor_type

    def set_default_tensor_type(wanted: Any) -> None:
        found = parse(wanted)
        if found is None:
            original(wanted)
            return
        dtype, on_card = found
        if not dtype.is_floating_point:
            raise TypeError("only floating-point types are supported as the default type")
        torch.set_default_dtype(dtype)
        machine.default_cuda = on_card

    patches.set(torch, "set_default_tensor_type", set_default_tensor_type)

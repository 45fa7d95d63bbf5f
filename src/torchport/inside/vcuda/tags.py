"""A tensor's device is a tag on its storage.

The Python object of a storage lives as long as the storage itself, so an attribute on it follows views, ``detach()``,
``.data`` and in-place operators as the device does on a real card, and the tag's end is the storage's end.
"""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.places import Place
from torchport.inside.vcuda.machine import Gpu, Machine

HOST = -1
UNBORN = -2  # made in C++ from another tensor's options: adopts the device of the first operator it takes part in

PLAIN = (torch.Tensor, torch.nn.Parameter)  # classes without a device of their own
storage_of = torch._C.TensorBase.untyped_storage  # not the attribute of a subclass


class Origin:
    """Where a storage came from, and what it is used for (set when an optimizer claims it)."""

    __slots__ = ("built", "kind", "module", "op", "parent", "place", "root")

    def __init__(self, place: Place | None, op: str) -> None:
        self.place = place
        self.op = op
        self.kind = "activation"
        self.module: str | None = None
        self.built: list[Place] = []  # where the objects are made in whose __init__ this happened, innermost first
        self.parent: tuple[Place | None, str] | None = None  # place and maker of what a host result was made from
        self.root: tuple[Place | None, str] | None = None  # and of what all that came from


def descend(origin: Origin, source: Origin) -> None:
    """Says that ``origin`` was computed from ``source``: from its place, or from where that came if it is the same."""
    origin.parent = source.parent if source.place == origin.place else (source.place, source.op)
    origin.root = source.root or (source.place, source.op)


class Tag:
    """Device of one storage, its size as the card counts it, where it was born and last moved."""

    __slots__ = ("birth", "bytes", "device", "gpu", "moved", "moved_by", "origin", "pinned")

    def __init__(self, device: int, origin: Origin) -> None:
        self.device = device
        self.origin = origin  # of this memory
        self.birth = origin  # of the tensor: a copy on another device keeps that of what it copies
        self.gpu: Gpu | None = None
        self.bytes = 0
        self.moved: Place | None = None
        self.moved_by = ""
        self.pinned = False

    def charge(self, gpu: Gpu, nbytes: int) -> None:
        """Counts the storage on a card, in blocks of 512 bytes."""
        self.gpu = gpu
        self.bytes = size = (nbytes + 511) & ~511
        gpu.allocated += size
        gpu.total_allocated += size
        gpu.allocations += 1
        if gpu.allocated > gpu.peak:
            gpu.peak = gpu.allocated
        gpu.events.append((self.origin, size))

    def release(self) -> None:
        gpu = self.gpu
        if gpu is not None:
            self.gpu = None
            gpu.allocated -= self.bytes
            gpu.total_freed += self.bytes
            gpu.frees += 1
            gpu.events.append((self.origin, -self.bytes))

    def __del__(self) -> None:
        if self.gpu is not None:
            self.release()


def parts(tensor: Any) -> tuple[Any, ...]:
    """The plain tensors whose storages carry the device of ``tensor`` (sparse values, wrapped tensors)."""
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return parts(torch._C._functorch.get_unwrapped(tensor))
    if tensor.__class__ not in PLAIN:
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            with torch._C.DisableTorchFunctionSubclass():  # it refuses to be looked at
                return (tensor.detach(),)
        if hasattr(tensor, "__tensor_flatten__"):
            return _inner(tensor)
    layout = tensor.layout
    if layout is torch.strided:
        try:
            storage_of(tensor)
        except (NotImplementedError, RuntimeError):
            return _inner(tensor)
        return (tensor,)
    with torch._C._DisableTorchDispatch():
        if layout is torch.sparse_coo:
            return (tensor._values(), tensor._indices())
        if layout in (torch.sparse_csr, torch.sparse_bsr):
            return (tensor.values(), tensor.crow_indices(), tensor.col_indices())
        if layout in (torch.sparse_csc, torch.sparse_bsc):
            return (tensor.values(), tensor.ccol_indices(), tensor.row_indices())
    return _inner(tensor)


def _inner(tensor: Any) -> tuple[Any, ...]:
    """Tensors inside a wrapper subclass, whose own storage, if it has one, is empty."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return ()
    names, _ = flatten()
    held = (getattr(tensor, name) for name in names)
    return tuple(part for inner in held if isinstance(inner, torch.Tensor) for part in parts(inner))


def tag_of(tensor: Any) -> Tag | None:
    """The tag of a tensor's storage; None means a host tensor of unknown origin."""
    try:
        tag: Tag | None = storage_of(tensor)._vcuda
        if tag is not None or tensor.__class__ in PLAIN:
            return tag
    except (NotImplementedError, RuntimeError, AttributeError, ValueError):
        pass
    found = parts(tensor)
    return getattr(storage_of(found[0]), "_vcuda", None) if found else None


def device_of(tensor: Any) -> int:
    """Index of the card a tensor is on; HOST (-1) for host tensors, UNBORN (-2) for undecided ones."""
    tag = tag_of(tensor)
    return HOST if tag is None else tag.device


def put(machine: Machine, tensor: Any, device: int, op: str = "") -> Any:
    """Says that a tensor's storage is on ``device``; its birth stays what it was. Returns the tensor."""
    for part in parts(tensor):
        tag_storage(machine, storage_of(part), device, op)
    return tensor


def born(tensor: Any, place: Place | None, op: str) -> None:
    """Says where and by what a host tensor was made, where the operators that made it lie in a library."""
    for part in parts(tensor):
        storage = storage_of(part)
        if storage._vcuda is None:
            storage._vcuda = Tag(HOST, Origin(place, op))
        elif storage._vcuda.device < 0:
            storage._vcuda.origin = storage._vcuda.birth = Origin(place, op)


def tag_storage(machine: Machine, storage: Any, device: int, op: str = "") -> Tag:
    """The same for a storage object."""
    tag: Tag | None = storage._vcuda
    if tag is None:
        tag = storage._vcuda = Tag(HOST, Origin(machine.places.here(), op))
    if tag.device != device:
        tag.release()
        tag.device = device
        if device >= 0:
            machine.admit(device, storage.nbytes())
            tag.charge(machine.gpus[device], storage.nbytes())
    return tag

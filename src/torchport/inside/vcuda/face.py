"""What a tensor says of itself, and what it refuses because it lies on a card."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import factories, moves, syncs, tags
from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.faults import operand
from torchport.inside.vcuda.handwritten import set_storage_text, type_string
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST, storage_of

_Base: Any = torch._C.TensorBase
_raw_device = _Base.device.__get__


def install(patches: Patches, machine: Machine) -> None:
    """Replaces attributes and methods of Tensor that depend on its device."""
    patches.set(torch.UntypedStorage, "_vcuda", None)
    _properties(patches, machine)
    _to_host(patches, machine)
    _writes(patches, machine)
    if TORCH < (2, 8):
        patches.set(torch.Tensor, "as_subclass", _as_subclass)
    for name in ("new_tensor", "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "new"):
        patches.set(torch.Tensor, name, factories.method(machine, getattr(torch.Tensor, name), name))


def _as_subclass(self: Any, cls: type) -> Any:
    """In torch 2.4 a mode that sees the alias being made keeps it from becoming a tensor of another class."""
    with torch._C._DisableTorchDispatch():
        return _Base.as_subclass(self, cls)


def _properties(patches: Patches, machine: Machine) -> None:
    cards = tuple(torch.device("cuda", index) for index in range(len(machine.gpus)))

    def device(self: Any) -> torch.device:
        try:
            tag = storage_of(self)._vcuda
            if tag is None and self.__class__ not in tags.PLAIN:
                tag = tags.tag_of(self)
        except (NotImplementedError, RuntimeError, AttributeError, ValueError):
            tag = tags.tag_of(self)
        if tag is None or tag.device < 0:
            return _raw_device(self)
        return cards[tag.device]

    def unless_raw(self: Any) -> torch.device:
        """Shapes only: torch's own Python decides on the physical device while an operator runs."""
        return _raw_device(self) if machine.local.raw else device(self)

    shown = unless_raw if machine.options.backing == "meta" else device
    patches.set(torch.Tensor, "device", property(shown))
    patches.set(torch.Tensor, "is_cuda", property(lambda self: shown(self).type == "cuda"))
    patches.set(torch.Tensor, "is_cpu", property(lambda self: shown(self).type == "cpu"))
    patches.set(torch.Tensor, "is_meta", property(lambda self: shown(self).type == "meta"))
    patches.set(torch.Tensor, "get_device", lambda self: tags.device_of(self) if tags.device_of(self) >= 0 else -1)
    patches.set(torch, "get_device", lambda tensor: tensor.get_device())
    raw_type = _Base.type

    def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            return type_string(operand("self", self)) if tags.device_of(self) >= 0 else raw_type(self)
        return machine.convert_type(self, dtype, non_blocking)

    patches.set(torch.Tensor, "type", type_)
    raw_shared = torch.Tensor.is_shared
    patches.set(torch.Tensor, "is_shared", lambda self: tags.device_of(self) >= 0 or raw_shared(self))
    raw_share = torch.Tensor.share_memory_
    patches.set(torch.Tensor, "share_memory_", lambda self: self if tags.device_of(self) >= 0 else raw_share(self))


def _to_host(patches: Patches, machine: Machine) -> None:
    raw_numpy, raw_list = _Base.numpy, _Base.tolist
    raw_repr = torch.Tensor.__repr__

    def numpy(self: Any, *, force: bool = False) -> Any:
        if force and tags.device_of(self) >= 0:
            return raw_numpy(self.detach().cpu().resolve_conj().resolve_neg())
        if not force and self.requires_grad:
            return raw_numpy(self)  # torch's own refusal comes first
        return raw_numpy(refused(self), force=force)

    def refused(self: Any) -> Any:
        if tags.device_of(self) < 0:
            return self
        here = operand("self", self)
        text = (
            f"can't convert {self.device} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
        machine.faults.refuse("R102", text, TypeError, [here], here, remedy="to-cpu", op="numpy")
        return _on_host(machine, self.detach())

    def array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        result = self.numpy()
        return result if dtype is None and not copy else result.astype(dtype or result.dtype, copy=bool(copy))

    def tolist(self: Any) -> Any:
        if tags.device_of(self) >= 0:
            syncs.transfer(machine, self, tags.device_of(self), HOST, non_blocking=False)
            return raw_list(_on_host(machine, self))
        return raw_list(self)

    def represent(self: Any, *, tensor_contents: Any = None) -> str:
        if tags.device_of(self) < 0:
            return raw_repr(self, tensor_contents=tensor_contents)
        syncs.waited(machine, "repr")
        shapes_only = machine.options.backing == "meta"
        machine.local.quiet += 1
        machine.local.raw += shapes_only
        try:
            text: str = raw_repr(self, tensor_contents=tensor_contents)
        finally:
            machine.local.quiet -= 1
            machine.local.raw -= shapes_only
        return text.replace("device='meta'", f"device='{self.device}'") if shapes_only else text

    patches.set(torch.Tensor, "numpy", numpy)
    patches.set(torch.Tensor, "__array__", array)
    patches.set(torch.Tensor, "tolist", tolist)
    patches.set(torch.Tensor, "__repr__", represent)


def _on_host(machine: Machine, tensor: Any) -> Any:
    """The numbers of a tensor on a card, without counting anything."""
    if machine.options.backing == "meta":
        from torchport.inside.vcuda import meta

        return meta.host_copy(tensor)
    return tensor


def _writes(patches: Patches, machine: Machine) -> None:
    """Copies into a tensor on another device: the gradient must find its way back."""
    raw_set, raw_copy = _Base.__setitem__, _Base.copy_
    raw_grad, raw_set_ = _Base.grad, _Base.set_

    def arriving(self: Any, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
            target, source = tags.device_of(self), tags.device_of(value)
            if target != source and target > tags.UNBORN and source > tags.UNBORN:
                return moves.moved(machine, value, target)
        return value

    def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
        return raw_copy(self, arriving(self, src), non_blocking)

    def setitem(self: Any, index: Any, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.requires_grad and _basic(index):
            value = arriving(self, value)
        raw_set(self, index, value)

    def set_(self: Any, source: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(source, torch.UntypedStorage):
            _check_storage(machine, self, source)
        return raw_set_(self) if source is None else raw_set_(self, source, *args, **kwargs)

    def set_grad(self: Any, gradient: Any) -> None:
        if isinstance(gradient, torch.Tensor):
            _check_gradient(machine, self, gradient)
        raw_grad.__set__(self, gradient)

    patches.set(torch.Tensor, "copy_", copy_)
    patches.set(torch.Tensor, "set_", set_)
    patches.set(torch.Tensor, "__setitem__", setitem)
    patches.set(torch.Tensor, "grad", property(raw_grad.__get__, set_grad, raw_grad.__delete__))


def _basic(index: Any) -> bool:
    """Indexing by numbers and slices writes through copy_, which may cross devices."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts)


def _check_storage(machine: Machine, tensor: Any, storage: Any) -> None:
    own = tags.device_of(tensor)
    other = HOST if storage._vcuda is None else storage._vcuda.device
    if own != other and tags.UNBORN not in (own, other):
        text = set_storage_text(own, other)
        here = operand("self", tensor)
        machine.faults.refuse("R101", text, RuntimeError, [here], here, op="set_")


def _check_gradient(machine: Machine, tensor: Any, gradient: Any) -> None:
    own, other = tags.device_of(tensor), tags.device_of(gradient)
    if own == other or tags.UNBORN in (own, other):
        return
    if (own >= 0) != (other >= 0):
        text = (
            f"attempting to assign a gradient with device type '{'cuda' if other >= 0 else 'cpu'}' to a tensor "
            f"with device type '{'cuda' if own >= 0 else 'cpu'}'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )
    else:
        text = (
            f"attempting to assign a gradient located on device with index '{other}' to a tensor located on "
            f"device with index '{own}'. Please ensure that the gradient and the tensor are on the same device"
        )
    here = [operand("tensor", tensor), operand("gradient", gradient)]
    machine.faults.refuse("R108", text, RuntimeError, here, here[1], op="grad")

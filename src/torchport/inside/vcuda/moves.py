"""Copies between devices that gradients can cross: ``to``, ``cuda``, ``cpu``, ``pin_memory``."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import devices, meta, syncs, tags
from torchport.inside.vcuda.devices import OTHER
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST, UNBORN

_to = torch._C.TensorBase.to
_clone = torch._C.TensorBase.clone
_raw_parse_to = torch._C._nn._parse_to


def _parse_to(*args: Any, **kwargs: Any) -> Any:
    """Reads the arguments of ``to``. A plain number is a card, where a CPU wheel looks for its accelerator."""
    if args and args[0].__class__ is int:
        args = (f"cuda:{args[0]}", *args[1:])
    if kwargs.get("device").__class__ is int:
        kwargs["device"] = f"cuda:{kwargs['device']}"
    return _raw_parse_to(*args, **kwargs)


def install(patches: Patches, machine: Machine) -> None:
    """Replaces the methods of Tensor that cross devices."""
    patches.set(torch.Tensor, "to", _method_to(machine))
    patches.set(torch.Tensor, "cuda", _method_cuda(machine))
    patches.set(torch.Tensor, "cpu", _method_cpu(machine))
    patches.set(torch.Tensor, "pin_memory", _method_pin(machine))
    patches.set(torch.Tensor, "is_pinned", _is_pinned)
    patches.set(torch._C._nn, "_parse_to", _parse_to)  # read by nn.Module.to


class Move(torch.autograd.Function):
    """A copy to another device whose gradient goes back to where the tensor came from."""

    generate_vmap_rule = True

    @staticmethod
    def forward(machine: Machine, tensor: Any, target: int, options: Any) -> Any:
        return copied(machine, tensor, target, *options)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.machine, tensor, _, ctx.options = inputs
        ctx.source = tags.device_of(tensor)
        ctx.dtype = tensor.dtype

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        machine = ctx.machine
        if tags.device_of(gradient) == ctx.source:
            return None, gradient.to(ctx.dtype), None, None
        options = (ctx.dtype if ctx.dtype != gradient.dtype else None, ctx.options[1], None)
        return None, moved(machine, gradient, ctx.source, *options), None, None

    @staticmethod
    def jvp(ctx: Any, machine: Any, tangent: Any, target: Any, options: Any) -> Any:
        return copied(machine, tangent, target, *options)


def moved(
    machine: Machine,
    tensor: Any,
    target: int,
    dtype: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """A copy of ``tensor`` on ``target``, differentiable."""
    options = (dtype, non_blocking, memory_format)
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return copied(machine, tags.parts(tensor)[0], target, *options).as_subclass(type(tensor))
    if tensor.requires_grad and torch.is_grad_enabled():
        return Move.apply(machine, tensor, target, options)
    return copied(machine, tensor, target, *options)


def copied(machine: Machine, tensor: Any, target: int, dtype: Any, non_blocking: bool, memory_format: Any) -> Any:
    """The copy itself: counted, tagged, and given the place where it happened."""
    source = tags.device_of(tensor)
    syncs.transfer(machine, tensor, source, target, non_blocking)
    if machine.local.quiet:
        pass
    elif source == HOST:
        _remarks(machine, tensor, non_blocking)
    elif target == HOST and non_blocking:
        machine.faults.remark("R204", what="non_blocking", text="read it only after torch.cuda.synchronize()")
    local = machine.local
    before, local.pending = local.pending, target
    try:
        result = _copy(machine, tensor, target, dtype, memory_format)
    finally:
        local.pending = before
    tag = tags.tag_of(result)
    if tag is None or tag.device != target:
        tags.put(machine, result, target)
        tag = tags.tag_of(result)
    before_tag = tags.tag_of(tensor)
    if tag is not None:
        tag.moved = machine.places.here()
        tag.moved_by = f".to({'cpu' if target == HOST else f'cuda:{target}'!r})"
        if before_tag is not None:
            tag.birth = before_tag.birth
            tag.origin.kind = before_tag.origin.kind
    return result


def _copy(machine: Machine, tensor: Any, target: int, dtype: Any, memory_format: Any) -> Any:
    if machine.options.backing == "meta":
        if target >= 0:
            return _to(tensor, device="meta", dtype=dtype or tensor.dtype, copy=True)
        if meta.is_meta(tensor):
            with torch.no_grad():
                return meta.host_copy(tensor if dtype is None else _to(tensor, dtype))
    if dtype is not None and dtype != tensor.dtype:
        if memory_format is None:
            return _to(tensor, dtype, copy=True)
        return _to(tensor, dtype, copy=True, memory_format=memory_format)
    if tensor.layout is not torch.strided:
        return _clone(tensor)
    return _clone(tensor) if memory_format is None else _clone(tensor, memory_format=memory_format)


_OFTEN = 4  # times in a row that one line may send the same unchanged tensor before that is worth a word


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _remarks(machine: Machine, tensor: Any, non_blocking: bool) -> None:
    """Copies to a card that could be cheaper."""
    tag = tags.tag_of(tensor)
    if non_blocking and (tag is None or not tag.pinned):
        machine.faults.remark("R202", what="non_blocking", text="no effect on memory that is not pinned")
    if tag is None or tensor.dim() == 0:
        return
    place = machine.places.here()
    state = (_version(tensor), tensor.storage_offset(), tensor.shape)
    last, before, times = machine.sent.get(place, (None, None, 0))
    times = times + 1 if last is tag and before == state else 1
    machine.sent[place] = (tag, state, times)
    if times == _OFTEN:
        machine.faults.repeated(tensor)


def _method_to(machine: Machine) -> Any:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (args and isinstance(args[0], torch.Tensor)) or "other" in kwargs:
            other = kwargs.pop("other", None)
            if other is None:
                other, args = args[0], args[1:]
            args = (device_property(machine, other), other.dtype, *args)
        copy = kwargs.pop("copy", False)
        if len(args) and args[-1].__class__ is bool and len([a for a in args if a.__class__ is bool]) == 2:
            copy, args = args[-1], args[:-1]
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        target = None if device is None else devices.index_of(machine, device)
        if target == OTHER:
            return _to(self, device=device, dtype=dtype, non_blocking=non_blocking, copy=copy)
        source = tags.device_of(self)
        if source == UNBORN and target is not None:
            tags.put(machine, self, target)
            source = target
        if target is None or target == source:
            extra = {} if memory_format is None else {"memory_format": memory_format}
            if dtype is None:
                return self if not copy and not extra else _to(self, self.dtype, copy=copy, **extra)
            return _to(self, dtype, copy=copy, **extra)
        return moved(machine, self, target, dtype, non_blocking, memory_format)

    return to


def device_property(machine: Machine, tensor: Any) -> torch.device:
    """The device that a tensor says it is on."""
    return tensor.device


def _method_cuda(machine: Machine) -> Any:
    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        target = devices.index_of(machine, "cuda" if device is None else device)
        if target < 0:
            raise RuntimeError(f"Invalid device, must be cuda device, but got {device}")
        source = tags.device_of(self)
        if source == target:
            return self
        if device is None and source >= 0 and machine.current == source:
            return self
        return moved(machine, self, target, None, non_blocking, memory_format)

    return cuda


def _method_cpu(machine: Machine) -> Any:
    def cpu(self: Any, memory_format: Any = None) -> Any:
        if tags.device_of(self) < 0:
            return self if memory_format is None else _to(self, self.dtype, memory_format=memory_format)
        return moved(machine, self, HOST, None, False, memory_format)

    return cpu


def _method_pin(machine: Machine) -> Any:
    def pin_memory(self: Any, device: Any = None) -> Any:
        from torchport.inside.vcuda.faults import operand
        from torchport.inside.vcuda.handwritten import type_string

        if tags.device_of(self) >= 0:
            text = f"cannot pin '{type_string(operand('self', self))}' only dense CPU tensors can be pinned"
            here = operand("self", self)
            machine.faults.refuse("R111", text, RuntimeError, [here], here, remedy="do-not-pin", op="pin_memory")
            return self
        if _is_pinned(self):
            return self
        result = _clone(self)
        tag = tags.tag_of(result)
        if tag is None:
            tags.put(machine, result, HOST, "pin_memory")
            tag = tags.tag_of(result)
        if tag is not None:
            before = tags.tag_of(self)
            if before is not None:
                tag.birth = before.birth
            tag.pinned = True
        return result

    return pin_memory


def _is_pinned(self: Any, device: Any = None) -> bool:
    tag = tags.tag_of(self)
    return tag is not None and tag.device == HOST and tag.pinned

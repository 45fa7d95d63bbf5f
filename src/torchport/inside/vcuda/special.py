"""Operators that the floor does not simply run: copies, the questions of the host, and kernels of newer cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from torchport.inside.vcuda import devices, meta, rules, syncs, tags
from torchport.inside.vcuda.operators import Operator, argument
from torchport.inside.vcuda.tags import UNBORN

if TYPE_CHECKING:
    from torchport.inside.vcuda.floor import Floor

Special = Callable[["Floor", Operator, Any, Any], Any]

_CPU = torch.device("cpu")


def _copy_(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    """``dst.copy_(src)``: any two devices, and the bytes are counted."""
    written, source = tags.device_of(args[0]), tags.device_of(args[1])
    machine = floor.machine
    if UNBORN in (written, source) and written != source:
        if written == UNBORN:
            tags.put(machine, args[0], source)
            written = source
        else:
            tags.put(machine, args[1], written)
            source = written
    if written != source:
        non_blocking = bool(argument(operator, args, kwargs, "non_blocking"))
        syncs.transfer(machine, args[1], source, written, non_blocking)
        if floor.shapes_only:
            return meta.copy_(args[0], args[1], written, source)
    return operator.func(*args, **kwargs)


def _copied(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    """``clone`` and ``_to_copy`` stay on their device unless a move is under way."""
    pending = floor.local.pending
    device = tags.device_of(args[0]) if pending is None else pending
    asked = kwargs.get("device")
    if asked is not None and asked.type == "cuda":
        device = devices.index_of(floor.machine, asked)
        kwargs = {**kwargs, "device": _CPU}
        if device != tags.device_of(args[0]):
            syncs.transfer(floor.machine, args[0], tags.device_of(args[0]), device, bool(kwargs.get("non_blocking")))
    out = operator.func(*args, **kwargs)
    floor.tag(operator, out, device)
    if operator.packet == "aten::_to_copy":  # another type of the same numbers: born where they were
        made, given = tags.tag_of(out), tags.tag_of(args[0])
        if made is not None and given is not None and made is not given:
            made.birth = given.birth
    return out


def _local_scalar(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    device = tags.device_of(args[0])
    if device >= 0:
        if not floor.local.quiet:
            syncs.note(floor.machine, operator)
        if floor.shapes_only and meta.is_meta(args[0]):
            return meta.stand_in(floor.machine, args[0])
    return operator.func(*args, **kwargs)


def _index(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    """Indexing waits for the device when an index is a mask or lies on the host."""
    device = tags.device_of(args[0])
    if device >= 0 and not floor.local.quiet:
        value = args[2] if len(args) > 2 else None
        if syncs.indexing_waits(args[1], value, device):
            syncs.note(floor.machine, operator)
    return floor.judge(operator, args, kwargs)


def _always_judged(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    """Operators that want an operand on the host even where all are on one card."""
    return floor.judge(operator, args, kwargs, always=True)


def _needs_newer_card(text: str, least: tuple[int, int]) -> Special:
    """Kernels that a card of the named capability does not have."""

    def judged(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
        machine = floor.machine
        if tags.device_of(args[0]) >= 0 and machine.spec.capability < least:
            here = rules.Operand("self", args[0], tags.device_of(args[0]))
            machine.faults.refuse("R109", text, RuntimeError, [here], here, remedy="newer-card", op=operator.name)
        return floor.judge(operator, args, kwargs)

    return judged


_FLASH = _needs_newer_card("FlashAttention only supports Ampere GPUs or newer.", (8, 0))
_SCALED_MM = _needs_newer_card(
    "torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+", (8, 9)
)


def _keep(floor: Floor, operator: Operator, args: Any, kwargs: Any) -> Any:
    """Bookkeeping operators that neither read nor move anything."""
    return operator.func(*args, **kwargs)


OPERATORS: dict[str, Special] = {
    "aten::copy_": _copy_,
    "aten::clone": _copied,
    "aten::_to_copy": _copied,
    "aten::_local_scalar_dense": _local_scalar,
    "aten::index": _index,
    "aten::_unsafe_index": _index,
    "aten::index_put": _index,
    "aten::index_put_": _index,
    "aten::_index_put_impl_": _index,
    "aten::_unsafe_index_put": _index,
    "aten::_pack_padded_sequence": _always_judged,
    "aten::_scaled_dot_product_flash_attention": _FLASH,
    "aten::_flash_attention_forward": _FLASH,
    "aten::_scaled_mm": _SCALED_MM,
    "aten::detach": _keep,
    "aten::lift_fresh": _keep,
    "aten::alias": _keep,
    "aten::_has_same_storage_numel": _keep,
}

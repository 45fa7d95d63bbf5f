"""Do these operands live where CUDA accepts them? The generated check and the one of TensorIterator.

A rule is a function ``(operator, operands) -> Verdict``. The hand-written checks stand in ``handwritten.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.operators import Operator

HOST = tags.HOST
UNBORN = tags.UNBORN


@dataclass(slots=True)
class Operand:
    """One tensor argument of an operator call. ``out`` marks what the operator writes to."""

    name: str
    tensor: Any
    device: int
    out: bool = False
    group: int = 0  # position inside a list of tensors

    @property
    def host_scalar(self) -> bool:
        return self.device == HOST and self.tensor.dim() == 0


@dataclass(slots=True)
class Clash:
    """A call that CUDA refuses: its words, and which operands made it so."""

    text: str
    offender: Operand | None
    error: type[BaseException] = RuntimeError
    id: str = "R101"
    operands: list[Operand] = field(default_factory=list)
    remedy: str = "move"


@dataclass(slots=True)
class Verdict:
    """Device of the results, and the clash if CUDA refuses the call."""

    device: int
    clash: Clash | None = None


def heal(found: list[Operand], offender: Operand) -> bool:
    """Takes the offender for moved to where the others are. False if it is not among the operands."""
    others = [o.device for o in found if o.tensor is not offender.tensor]
    target = next((device for device in others if device >= 0 and device != offender.device), None)
    moved = [o for o in found if o.tensor is offender.tensor]
    if target is None or not moved:
        return False
    for operand in moved:
        operand.device = target
    return True


def device_name(device: int) -> str:
    """The device as CUDA's messages print it."""
    return f"cuda:{device}" if device >= 0 else "cpu"


def operands(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Operand]:
    """All tensor arguments in schema order, lists flattened."""
    result: list[Operand] = []
    for index, spec in enumerate(operator.func._schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(spec.name)
        if value is None:
            continue
        written = spec.alias_info is not None and spec.alias_info.is_write
        for group, tensor in enumerate(_tensors(value)):
            result.append(Operand(spec.name, tensor, tags.device_of(tensor), written, group))
    return result


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, torch.Tensor):
                yield item


def first_card(found: Iterable[Operand]) -> int:
    """Device of the first operand on a card, HOST if there is none."""
    return next((operand.device for operand in found if operand.device >= 0), HOST)


def exact_same(operator: Operator, found: list[Operand]) -> Verdict:
    """The check that torchgen writes into the CUDA wrapper: every operand on the device of the first."""
    assert operator.check is not None
    return ordered(operator.check.wrapper, operator.check.args, found)


def ordered(wrapper: str, names: Iterable[str], found: list[Operand]) -> Verdict:
    """Walks the named arguments in order; the first tensor decides, the next on another device is refused."""
    result = first_card(found)
    common: int | None = None
    for name in names:
        for operand in found:
            if operand.name != name:
                continue
            if common is None:
                common = operand.device
            elif operand.device != common:
                text = same_device_text(name, operand.device, common, wrapper)
                return Verdict(result, Clash(text, _culprit(found, operand, common)))
    return Verdict(result)


def _culprit(found: list[Operand], named: Operand, common: int) -> Operand:
    """Who has to move: the operand that CUDA names, unless it is on the card and the first one is not."""
    if named.device >= 0 and common == HOST:
        return next(operand for operand in found if operand.device == HOST)
    return named


def same_device_text(argument: str, device: int, common: int, wrapper: str) -> str:
    """CUDA's sentence, which changed in torch 2.8."""
    given, others = device_name(device), device_name(common)
    if TORCH >= (2, 8):
        return (
            f"Expected all tensors to be on the same device, but got {argument} is on {given}, "
            f"different from other tensors on {others} (when checking argument in method {wrapper})"
        )
    return (
        f"Expected all tensors to be on the same device, but found at least two devices, {others} and {given}! "
        f"(when checking argument for argument {argument} in method {wrapper})"
    )


def two_devices_text(first: int, second: int) -> str:
    """TensorIterator's sentence."""
    return (
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{device_name(first)} and {device_name(second)}!"
    )


# Operators for which TensorIterator excuses no zero-dimensional host tensor.
_NO_HOST_SCALARS = frozenset({"aten::addcdiv", "aten::addcdiv_", "aten::cross", "aten::linalg_cross"})
if TORCH < (2, 7):
    _NO_HOST_SCALARS |= {"aten::addcmul", "aten::addcmul_"}
if TORCH < (2, 6):
    _NO_HOST_SCALARS |= {"aten::lerp.Tensor", "aten::lerp.Tensor_out", "aten::lerp_.Tensor"}


def tensor_iterator(operator: Operator, found: list[Operand]) -> Verdict:
    """The first operand on a card decides, outputs before inputs; one zero-dimensional host input is excused."""
    excused = _NO_HOST_SCALARS.isdisjoint((operator.packet, operator.name))
    walk = sorted(found, key=lambda operand: not operand.out)
    common = first_card(walk)
    scalars = 0
    for operand in walk:
        if operand.device == common:
            continue
        if excused and not operand.out and operand.host_scalar:
            scalars += 1
            if scalars > 1:
                return Verdict(common, Clash("Trying to pass too many CPU scalars to non-CPU kernel!", operand))
            continue
        return Verdict(common, Clash(two_devices_text(common, operand.device), operand))
    return Verdict(common)

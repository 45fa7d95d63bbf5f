"""What CUDA would refuse: recorded with both tensors and their history, then healed, or raised in strict mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from torchport.inside.places import Place
from torchport.inside.vcuda import names, tags
from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.cuda_errors import cuda_error
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.operators import Operator
from torchport.inside.vcuda.rules import Clash, Operand, device_name


@dataclass(slots=True)
class Seen:
    """One fault at one place; repeats are counted. ``fields`` holds plain JSON and Places."""

    number: int
    id: str
    severity: str
    place: Place | None
    fields: dict[str, Any]
    step: int
    count: int = 1


@dataclass(slots=True)
class Faults:
    """All faults of one process, in the order in which they showed."""

    machine: Machine
    seen: dict[Any, Seen] = field(default_factory=dict)
    sink: Callable[[Seen], None] | None = None
    consequences: int = 0

    def clash(self, operator: Operator, clash: Clash, further: bool = False) -> None:
        """An operator whose operands CUDA would refuse. Returns after healing; raises in strict mode."""
        machine = self.machine
        backward = machine.local.in_backward > 0
        if backward and machine.healed and not machine.options.strict and not _by_hand(clash.offender):
            self.consequences += 1
            return
        if backward and clash.id == "R101":
            clash.id = "R108"
        self.refuse(
            clash.id,
            clash.text,
            clash.error,
            clash.operands,
            clash.offender,
            remedy=clash.remedy,
            op=operator.name,
            further=further,
        )
        machine.healed = True
        self._move_parameters(clash)

    def refuse(
        self,
        id: str,
        text: str,
        error: type[BaseException] = RuntimeError,
        operands: Iterable[Operand] = (),
        offender: Operand | None = None,
        *,
        remedy: str = "move",
        op: str = "",
        fatal: bool = False,
        fields: dict[str, Any] | None = None,
        further: bool = False,
    ) -> None:
        """Records a fault; raises it where nothing can be healed (``fatal``) or in strict mode.

        ``fields`` is what the finding tells beside the tensors.
        """
        operands = list(operands)
        place = self.machine.places.here()
        tag = tags.tag_of(offender.tensor) if offender is not None else None
        key: Any = (id, place, names.birth(tag, place)[0] if tag else None, op, offender.name if offender else None)
        if tag is not None and tag.origin.kind in ("parameter", "buffer"):
            key = (*key[:3], "module")  # a module left behind is one fault, however many tensors it holds
        known = self.seen.get(key)
        if known is not None:
            known.count += not further  # the next operand of a call that was counted already
        else:
            told = {
                "op": op,
                "cuda_says": f"{error.__name__}: {text}",
                "healed": not (fatal or self.machine.options.strict),
                "in_backward": self.machine.local.in_backward > 0,
                **names.describe(self.machine, operands, offender, remedy),
                **(fields or {}),
            }
            self._add(key, id, "error", place, told)
        if fatal or self.machine.options.strict:
            raise error(text)

    def remark(
        self, id: str, what: str, text: str = "", severity: str = "info", place: Place | None = None, **extra: Any
    ) -> None:
        """Notes something that is not a clash of devices, once a place (the one that runs, unless it is given)."""
        place = place or self.machine.places.here()
        key = (id, place, what)
        known = self.seen.get(key)
        if known is not None:
            known.count += 1
            return
        self._add(key, id, severity, place, {"what": what, "text": text, **extra})

    def repeated(self, tensor: Any) -> None:
        """An unchanged host tensor that is sent to a card again and again."""
        here = Operand("self", tensor, tags.device_of(tensor))
        fields = names.describe(self.machine, [here], here, "move-once")
        name = fields["tensors"][0]["name"]
        self.remark("R203", what=name or "tensor", text="the same bytes each time", severity="warning", **fields)

    def _add(self, key: Any, id: str, severity: str, place: Place | None, fields: dict[str, Any]) -> None:
        seen = Seen(len(self.seen) + 1, id, severity, place, fields, self.machine.step)
        self.seen[key] = seen
        if self.sink is not None:
            self.sink(seen)

    def _move_parameters(self, clash: Clash) -> None:
        """Heals a module left on the host for good, as moving it would: its gradients must follow."""
        target = next((operand.device for operand in clash.operands if operand.device >= 0), None)
        if target is None:
            return
        for operand in clash.operands:
            tag = tags.tag_of(operand.tensor)
            trained = operand.tensor.requires_grad and operand.tensor.is_leaf
            kept = trained or (tag is not None and tag.origin.kind in ("parameter", "buffer"))
            # What is written to holds the result from now on, which is meant to be on the card.
            written = operand.out and clash.offender is not None and operand.tensor is clash.offender.tensor
            if operand.device == tags.HOST and (kept or written):
                tags.put(self.machine, operand.tensor, target)

    def not_on_cuda(self, operator: Operator, tensor: Any) -> None:
        """An operator for which CUDA has no kernel of this type."""
        dtype = _SCALAR_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
        text = f"\"{operator.floating_only}\" not implemented for '{dtype}'"
        operand = Operand("self", tensor, tags.device_of(tensor))
        error = NotImplementedError if TORCH >= (2, 8) else RuntimeError
        self.refuse("R109", text, error, [operand], operand, remedy="floating-point", op=operator.name)

    def device_assert(self, operator: Operator, error: IndexError) -> NoReturn:
        """An index out of range: an exception on the host, a poisoned context on a card."""
        said = cuda_error("device-side assert triggered", "cudaErrorAssert")
        self.machine.poisoned = said
        self.refuse("R110", str(said), type(said), remedy=str(error), op=operator.name, fatal=True)
        raise AssertionError("unreachable")


def _by_hand(offender: Operand | None) -> bool:
    """Whether a gradient was made in somebody's own backward function, and not by autograd from healed operands."""
    tag = tags.tag_of(offender.tensor) if offender is not None else None
    place = tag.birth.place if tag is not None else None
    return place is not None and place[0].co_name in ("backward", "vjp")


_SCALAR_NAMES = {
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def operand(name: str, tensor: Any) -> Operand:
    """A tensor as an argument of an API call."""
    return Operand(name, tensor, tags.device_of(tensor))


def where(tensor: Any) -> str:
    """``cuda:0`` or ``cpu``."""
    return device_name(tags.device_of(tensor))

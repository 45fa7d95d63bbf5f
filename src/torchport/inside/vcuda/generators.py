"""Random generators of the virtual card: CPU generators that say they are on it.

The default generator of a card is the CPU's: a rehearsal then draws the very numbers that the plain CPU run
draws, and its losses can be compared bit for bit.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from torchport.inside.places import Place, variables
from torchport.inside.vcuda import devices
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST

_Base: Any = torch._C.Generator


def install(patches: Patches, machine: Machine) -> None:
    """Replaces torch.Generator by a class that accepts ``device="cuda"``."""

    known: dict[int, tuple[int, Place | None]] = {}  # address -> card and birth

    class _Kind(type(_Base)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, _Base)

    class Generator(_Base, metaclass=_Kind):
        """torch.Generator whose device may be a virtual card."""

        def __new__(cls, device: Any = "cpu") -> Any:
            index = devices.index_of(machine, device)
            if index == devices.OTHER:
                return _Base(device)
            self = _Base.__new__(cls, "cpu")
            self._vcuda = index
            # An operator is given another Python object for the same generator: it is known by its address.
            known[self._cdata] = (index, machine.places.here())
            weakref.finalize(self, known.pop, self._cdata, None)
            return self

        @property
        def device(self) -> torch.device:
            return torch.device("cpu") if self._vcuda == HOST else torch.device("cuda", self._vcuda)

        def __reduce__(self) -> Any:
            return _rebuilt, (str(self.device), self.get_state())

    Generator.__module__, Generator.__qualname__ = "torch", "Generator"
    patches.set(torch, "Generator", Generator)

    def generator_for(generator: Any, index: int) -> Any:
        """Checks that a generator may fill a tensor on ``index``; returns the generator to draw from."""
        if generator is not None:
            own, born = known.get(generator._cdata, (getattr(generator, "_vcuda", HOST), None))
            if (own >= 0) != (index >= 0):
                wanted, found = ("cuda", "cpu") if index >= 0 else ("cpu", "cuda")
                text = f"Expected a '{wanted}' device type for generator but found '{found}'"
                told = {"tensors": [_told(machine, generator, found, born)], "offender": 0}
                machine.faults.refuse("R105", text, RuntimeError, remedy="generator", op="generator", fields=told)
        return getattr(generator, "stream", generator)  # of a card's default generator

    machine.generator_for = generator_for


def _told(machine: Machine, generator: Any, device: str, born: Place | None) -> dict[str, Any]:
    """A generator as a fault's report shows it."""
    name = None
    for frame in machine.places.frames()[:1]:
        for text, value in variables(frame).items():
            if isinstance(value, _Base) and value._cdata == generator._cdata:
                name = text
    said = {"name": name, "device": device, "argument": "generator", "born": born, "born_by": "torch.Generator"}
    return {**said, "shape": [], "dtype": "generator", "kind": None, "moved": None, "moved_by": None}


def _rebuilt(device: str, state: Any) -> Any:
    generator = torch.Generator(device)
    generator.set_state(state)
    return generator

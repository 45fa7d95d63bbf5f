"""Random generators of the virtual card: CPU generators that say they are on it.

The default generator of a card is the CPU's: a rehearsal then draws the very numbers that the plain CPU run
draws, and its losses can be compared bit for bit.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from torchport.inside.vcuda import devices
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST

_Base: Any = torch._C.Generator


def install(patches: Patches, machine: Machine) -> None:
    """Replaces torch.Generator by a class that accepts ``device="cuda"``."""

    cards: dict[int, int] = {}

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
            if index >= 0:
                # An operator is given another Python object for the same generator: it is known by its address.
                cards[self._cdata] = index
                weakref.finalize(self, cards.pop, self._cdata, None)
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
            own = getattr(generator, "_vcuda", cards.get(generator._cdata, HOST))
            if (own >= 0) != (index >= 0):
                wanted, found = ("cuda", "cpu") if index >= 0 else ("cpu", "cuda")
                text = f"Expected a '{wanted}' device type for generator but found '{found}'"
                machine.faults.refuse("R105", text, RuntimeError, remedy="generator", op="generator")
        return getattr(generator, "stream", generator)  # of a card's default generator

    machine.generator_for = generator_for


def _rebuilt(device: str, state: Any) -> Any:
    generator = torch.Generator(device)
    generator.set_state(state)
    return generator

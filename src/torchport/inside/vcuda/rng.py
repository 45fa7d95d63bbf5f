"""Random numbers of torch.cuda: the default generator of every card draws from the CPU generator's stream.

So a script draws the same numbers in a rehearsal as in a plain CPU run. ``torch.cuda.manual_seed`` therefore
only remembers its seed: in a plain CPU run it would not have reseeded that stream either.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_DEFAULT_SEED = 67280421310721  # c10::detail::default_rng_seed_val
_CUDA_STATE_BYTES = 16  # seed and offset: the state that a real card's generator saves


class DefaultGenerator(torch._C.Generator):
    """``torch.cuda.default_generators[index]``. What draws from it draws from ``stream``."""

    stream: torch.Generator
    _machine: Machine
    _vcuda: int
    _device: torch.device
    _seed: int
    _offset: int

    def __new__(cls, machine: Machine, index: int) -> DefaultGenerator:
        self: Any = super().__new__(cls, device="cpu")
        self.stream = torch.default_generator
        self._machine = machine
        self._vcuda = index
        self._device = torch.device("cuda", index)
        self._seed = _DEFAULT_SEED
        self._offset = 0
        return self

    @property
    def device(self) -> torch.device:
        return self._device

    def manual_seed(self, seed: int) -> DefaultGenerator:
        # CUDA takes every 64-bit number, negative ones as their two's complement.
        self._seed = int(seed) & 0xFFFF_FFFF_FFFF_FFFF
        self._offset = 0
        return self

    def seed(self) -> int:
        self._seed = random.SystemRandom().getrandbits(53)
        return self._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> torch.Tensor:
        return self.stream.get_state()

    def set_state(self, state: torch.Tensor) -> DefaultGenerator:
        state = host_state(self._machine, state)
        if state.dtype is torch.uint8 and state.numel() == _CUDA_STATE_BYTES:
            # Saved on a real card: it says nothing about the stream that is drawn from here.
            saved = bytes(state.tolist())
            self._seed = int.from_bytes(saved[:8], "little")
            self._offset = int.from_bytes(saved[8:], "little")
        else:
            self.stream.set_state(state)
        return self

    def get_offset(self) -> int:
        return self._offset

    def set_offset(self, offset: int) -> DefaultGenerator:
        self._offset = offset
        return self

    def clone_state(self) -> torch.Generator:
        return self.stream.clone_state()

    def graphsafe_get_state(self) -> torch.Generator:
        return self.clone_state()

    def graphsafe_set_state(self, state: torch.Generator) -> DefaultGenerator:
        self.set_state(state.get_state())
        return self


def host_state(machine: Machine, state: Any) -> Any:
    """The state of a generator, which must lie on the host; ``map_location="cuda"`` is what moves it away."""
    if not isinstance(state, torch.Tensor) or not state.is_cuda:
        return state
    from torchport.inside.vcuda.faults import operand

    here = operand("new_state", state)
    text = "RNG state must be a torch.ByteTensor"
    machine.faults.refuse("R104", text, TypeError, [here], here, remedy="to-cpu", op="set_rng_state")
    return state.cpu()


def install(patches: Patches, machine: Machine) -> None:
    """The CPU generator's own state must lie on the host, too."""
    original = torch.random.set_rng_state

    def set_rng_state(new_state: torch.Tensor) -> None:
        original(host_state(machine, new_state))

    for module in (torch, torch.random):
        patches.set(module, "set_rng_state", set_rng_state)

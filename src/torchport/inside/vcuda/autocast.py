"""``torch.autocast("cuda")`` on host memory: the CPU's autocast, with the type that was asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_UNSAFE = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


def install(patches: Patches, machine: Machine) -> None:
    """Lets a CUDA autocast region switch the CPU's on, for as long as it lasts."""
    cls = torch.amp.autocast_mode.autocast
    raw_enter, raw_exit = cls.__enter__, cls.__exit__

    def enter(self: Any) -> Any:
        result = raw_enter(self)
        if self.device == "cuda":
            stack = self.__dict__.setdefault("_vcuda_before", [])
            stack.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
            torch.set_autocast_enabled("cpu", bool(self._enabled))
            torch.set_autocast_dtype("cpu", self.fast_dtype)
        return result

    def leave(self: Any, *error: Any) -> Any:
        if self.device == "cuda":
            enabled, dtype = self._vcuda_before.pop()
            torch.set_autocast_enabled("cpu", enabled)
            torch.set_autocast_dtype("cpu", dtype)
        return raw_exit(self, *error)

    patches.set(cls, "__enter__", enter)
    patches.set(cls, "__exit__", leave)
    _scaler(patches, machine)
    functional = torch.nn.functional
    patches.set(functional, "binary_cross_entropy", _refused(functional.binary_cross_entropy))
    patches.set(torch.cuda, "is_bf16_supported", lambda including_emulation=True: _bf16(machine, including_emulation))


def _refused(original: Callable[..., Any]) -> Callable[..., Any]:
    """The cross entropy of probabilities, which CUDA's autocast refuses and the CPU's computes."""

    @functools.wraps(original)
    def binary_cross_entropy(input: Any, *args: Any, **kwargs: Any) -> Any:
        from torchport.inside.vcuda import tags

        if torch.is_autocast_enabled("cuda") and isinstance(input, torch.Tensor) and tags.device_of(input) >= 0:
            raise RuntimeError(_UNSAFE)
        return original(input, *args, **kwargs)

    return binary_cross_entropy


def _scaler(patches: Patches, machine: Machine) -> None:
    """GradScaler reads whether a step overflowed: waits of its own, which no change of the user's can spare."""
    for name in ("step", "update", "get_scale"):
        patches.set(torch.amp.GradScaler, name, _waiting(machine, getattr(torch.amp.GradScaler, name)))


def _waiting(machine: Machine, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        machine.local.waiter = "GradScaler"
        try:
            return original(self, *args, **kwargs)
        finally:
            machine.local.waiter = None

    return call


def _bf16(machine: Machine, including_emulation: bool) -> bool:
    return including_emulation or machine.spec.capability >= (8, 0)

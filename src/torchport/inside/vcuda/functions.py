"""Functions that users differentiate by hand: their gradients must come back where the inputs are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.faults import operand
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.moves import Move
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.rules import device_name


def install(patches: Patches, machine: Machine) -> None:
    """Remembers the devices of a Function's inputs, and compares its gradients with them."""
    # A class method, in C++ from torch 2.14 on: bound to the class through the descriptor in both cases.
    bound = torch.autograd.Function.__dict__["apply"].__get__

    @functools.wraps(torch.autograd.Function.apply)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = bound(None, cls)(*args, **kwargs)
        if cls is not Move:
            first = result[0] if isinstance(result, tuple) and result else result
            node = getattr(first, "grad_fn", None)
            if isinstance(node, BackwardCFunction):
                node._vcuda = [tags.device_of(a) if isinstance(a, torch.Tensor) else None for a in args]
        return result

    patches.set(torch.autograd.Function, "apply", classmethod(apply))
    for name in ("apply", "apply_boxed"):  # with boxed_grads_call, since torch 2.13
        if hasattr(BackwardCFunction, name):
            patches.set(BackwardCFunction, name, _checked(machine, getattr(BackwardCFunction, name)))


def _checked(machine: Machine, backward: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a user's backward function, its gradients compared with the inputs' devices."""

    @functools.wraps(backward)
    def checked(self: Any, *args: Any) -> Any:
        result = backward(self, *args)
        devices = getattr(self, "_vcuda", None)
        if devices is None:
            return result
        several = isinstance(result, tuple)
        pairs = zip(result if several else (result,), devices, strict=False)
        gradients = [_placed(machine, self, i, gradient, device) for i, (gradient, device) in enumerate(pairs)]
        return (*gradients, *result[len(gradients) :]) if several else gradients[0]

    return checked


def _placed(machine: Machine, node: Any, index: int, gradient: Any, device: int | None) -> Any:
    """The gradient, moved to the input's device if CUDA would have refused it."""
    if not isinstance(gradient, torch.Tensor) or device is None:
        return gradient
    own = tags.device_of(gradient)
    if own == device or tags.UNBORN in (own, device) or gradient.dim() == 0:
        return gradient
    text = (
        f"Function {node.name()} returned an invalid gradient at index {index} - "
        f"expected device {device_name(device)} but got {device_name(own)}"
    )
    here = operand("gradient", gradient)
    machine.faults.refuse("R108", text, RuntimeError, [here], here, op=node.name())
    return gradient.to(device_name(device))

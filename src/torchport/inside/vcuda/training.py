"""Where a training step begins and ends: ``backward()`` and the optimizer's step, seen from inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches


def install(patches: Patches, machine: Machine) -> None:
    """Marks the time in which autograd runs, and the parameters as such."""
    raw = torch.autograd._engine_run_backward
    local = machine.local

    @functools.wraps(raw)
    def engine(*args: Any, **kwargs: Any) -> Any:
        local.in_backward += 1
        try:
            return raw(*args, **kwargs)
        finally:
            local.in_backward -= 1

    patches.set(torch.autograd, "_engine_run_backward", engine)
    patches.set(torch.nn.Parameter, "__new__", staticmethod(_parameter(torch.nn.Parameter.__new__)))
    patches.set(torch.nn.Module, "register_buffer", _buffer(torch.nn.Module.register_buffer))
    patches.set(torch, "compile", _compile(machine))


def _parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(cls, *args, **kwargs)
        _mark(result, "parameter")
        return result

    return new


def _buffer(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def register_buffer(self: Any, name: str, tensor: Any, persistent: bool = True) -> None:
        original(self, name, tensor, persistent)
        if isinstance(tensor, torch.Tensor):
            _mark(tensor, "buffer")

    return register_buffer


def _mark(tensor: Any, kind: str) -> None:
    from torchport.inside.vcuda.tags import tag_of

    tag = tag_of(tensor)
    if tag is not None:
        tag.origin.kind = kind


def _compile(machine: Machine) -> Callable[..., Any]:
    """torch.compile runs eager, as it does with TORCH_COMPILE_DISABLE=1: the function itself comes back."""

    def compile(model: Any = None, **kwargs: Any) -> Any:
        machine.faults.remark("R501", what="torch.compile", text="runs eager in a rehearsal")
        return (lambda function: function) if model is None else model

    return compile

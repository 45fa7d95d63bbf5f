"""DistributedDataParallel: what its constructor asks of a module's devices, healed where CUDA would stop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from torchport.inside.vcuda import devices, shapes_reducer, tags
from torchport.inside.vcuda.dataparallel import place_module
from torchport.inside.vcuda.faults import operand
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST, UNBORN


def install(patches: Patches, machine: Machine) -> None:
    """Wraps DistributedDataParallel."""
    cls = torch.nn.parallel.DistributedDataParallel
    patches.set(cls, "__init__", _constructor(machine, cls.__init__))
    patches.set(cls, "forward", _with_replica(machine, cls.forward))
    if machine.options.backing == "meta":
        shapes_reducer.install(patches)


def _constructor(machine: Machine, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return original(self, *args, **kwargs)  # torch words it
        module = given["module"]
        if isinstance(module, torch.nn.Module):
            _check(machine, module, given.get("device_ids"), given.get("output_device"))
        before, machine.local.replica = machine.local.replica, _card(module)
        machine.local.quiet += 1  # it compares the ranks' modules once, which is nobody's step
        try:
            return original(self, *args, **kwargs)
        finally:
            machine.local.replica = before
            machine.local.quiet -= 1

    return construct


def _with_replica(machine: Machine, original: Callable[..., Any]) -> Callable[..., Any]:
    """C++ makes tensors of its own while a replica is built or prepared for a step: they are on the module's card."""

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, machine.local.replica = machine.local.replica, _card(self.module)
        try:
            return original(self, *args, **kwargs)
        finally:
            machine.local.replica = before

    return forward


def _card(module: Any) -> int:
    first = next(iter(module.parameters()), None) if isinstance(module, torch.nn.Module) else None
    return UNBORN if first is None else tags.device_of(first)


def _check(machine: Machine, module: Any, device_ids: Any, output_device: Any) -> None:
    ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
    parameters = [p for name, p in module.named_parameters() if name not in ignored]
    hosts = [p for p in parameters if tags.device_of(p) == HOST]
    if not hosts or not any(p.requires_grad for p in parameters):
        return
    cards = [tags.device_of(p) for p in parameters if tags.device_of(p) >= 0]
    if cards:
        kinds = {p.device.type for p in parameters}
        text = (
            "DistributedDataParallel's input module must be on the same type of devices, "
            f"but input module parameters locate in {kinds}."
        )
        _refuse(machine, module, hosts[0], text, cards[0])
    elif device_ids or output_device:
        if device_ids is not None and len(device_ids) > 1:
            return  # torch refuses that first
        locations = {p.device for p in parameters}
        text = (
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got "
            f"device_ids {device_ids}, output_device {output_device}, "
            f"and module parameters {locations}."
        )
        wanted = device_ids[0] if device_ids else output_device
        _refuse(machine, module, hosts[0], text, devices.index_of(machine, wanted))
    elif any(isinstance(each, torch.nn.SyncBatchNorm) for each in module.modules()):
        _refuse(machine, module, hosts[0], "SyncBatchNorm layers only work with GPU modules", machine.current)


def _refuse(machine: Machine, module: Any, parameter: Any, text: str, target: int) -> None:
    here = operand("parameter", parameter)
    machine.faults.refuse(
        "R112",
        text,
        ValueError,
        [here],
        here,
        remedy="module-to",
        op="DistributedDataParallel",
        fields={"extra": {"device": f"cuda:{target}"}},
    )
    place_module(machine, module, target)

"""Functions that make tensors from a ``device=`` argument: they make host memory and say where it is meant to be."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import isroutine
from typing import Any

import torch

from torchport.inside.vcuda import devices, syncs, tags
from torchport.inside.vcuda.devices import OTHER
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST

# Made from the caller's data rather than by an operator: bytes that lie on the host first.
_FROM_DATA = frozenset(
    {"tensor", "as_tensor", "asarray", "sparse_coo_tensor", "nested_tensor", "as_nested_tensor", "new_tensor"}
)
_FROM_HOST = ("from_numpy", "frombuffer", "from_file", "from_dlpack")


def install(patches: Patches, machine: Machine) -> None:
    """Wraps every function of torch whose schema has a device, and those that read the caller's data."""
    builtins: dict[int, str] = {}
    for owner, name, like in _targets():
        original = getattr(owner, name)
        wrapper = (_like if like else _factory)(machine, original, name)
        patches.set(owner, name, wrapper)
        builtins[id(wrapper)] = name
    _known_to_script(patches, builtins)
    for name in _FROM_HOST:
        patches.set(torch, name, _from_host(machine, getattr(torch, name), name))
    patches.set(torch.Tensor, "__new__", staticmethod(_constructor(machine)))


@functools.cache
def _targets() -> tuple[tuple[Any, str, bool], ...]:
    """(namespace, name, takes a tensor first) of every Python-visible factory."""
    spaces = {"": torch, "fft_": torch.fft}
    seen: set[tuple[int, str]] = set()
    found: list[tuple[Any, str, bool]] = []
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or all(a.name != "device" for a in schema.arguments):
            continue
        base = schema.name.removeprefix("aten::")
        prefix = "fft_" if base.startswith("fft_") else ""
        owner, name = spaces[prefix], base.removeprefix(prefix)
        if name.startswith("_") or (id(owner), name) in seen or not isroutine(getattr(owner, name, None)):
            continue
        seen.add((id(owner), name))
        found.append((owner, name, name.endswith("_like")))
    for name in (
        "tensor",
        "as_tensor",
        "asarray",
        "sparse_coo_tensor",
        "sparse_csr_tensor",
        "sparse_csc_tensor",
    ):
        if (id(torch), name) not in seen:
            found.append((torch, name, False))
    for name in ("nested_tensor", "as_nested_tensor"):
        found.append((torch.nested, name, False))
    return tuple(found)


def _factory(machine: Machine, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    local = machine.local
    from_data = name in _FROM_DATA

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        if name == "normal" and _has_tensor(args, kwargs):
            return original(*args, **kwargs)  # the overload that takes its size from a tensor takes no device
        device = kwargs.get("device")
        out = kwargs.get("out")
        if device is None:
            if out is not None:
                return original(*args, **kwargs)
            index = _of_data(args[0]) if from_data and args else None
            if index is None:
                index = devices.default_index(machine)
        else:
            index = devices.index_of(machine, device)
        if index == OTHER:
            return original(*args, **kwargs)
        # Jagged tensors are put together in Python, by functions that we have wrapped.
        jagged = kwargs.get("layout") is torch.jagged
        kwargs["device"] = _virtual(index) if jagged else _physical(machine, index)
        pinned = kwargs.pop("pin_memory", False)
        if "generator" in kwargs:
            kwargs["generator"] = machine.generator_for(kwargs["generator"], index)
        before, local.pending = local.pending, index
        try:
            result = original(*args, **kwargs)
        finally:
            local.pending = before
        return _placed(machine, result, index, name, args, pinned, from_data)

    return make


def _has_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(value, torch.Tensor) for value in (*args, kwargs.get("mean"), kwargs.get("std")))


def _of_data(data: Any) -> int | None:
    """``torch.tensor(t)``, ``as_tensor(t)`` and a nested tensor of tensors stay where these are."""
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], torch.Tensor) and data[0].dim() > 0:
        return tags.device_of(data[0])
    return tags.device_of(data) if isinstance(data, torch.Tensor) else None


def _physical(machine: Machine, index: int) -> str:
    return "meta" if index >= 0 and machine.options.backing == "meta" else "cpu"


def _placed(
    machine: Machine, result: Any, index: int, name: str, args: tuple[Any, ...], pinned: bool, from_data: bool
) -> Any:
    if hasattr(result, "fake_mode"):
        return result  # of a FakeTensorMode: there is nothing to place
    tag = tags.tag_of(result)
    if tag is None or tag.device != index:
        known = tag is not None and tag.device == HOST
        if known and from_data and args and isinstance(args[0], torch.Tensor):
            return args[0].to(_virtual(index))  # as_tensor(t, device=…) of a tensor elsewhere: a move
        tags.put(machine, result, index, f"torch.{name}")
        tag = tags.tag_of(result)
    if tag is not None:
        if not tag.origin.op.startswith("torch."):
            tag.origin.op = f"torch.{name}"
        if pinned:
            tag.pinned = True
    if from_data and index >= 0:
        syncs.transfer(machine, result, HOST, index, non_blocking=False)
    return result


def _virtual(index: int) -> str:
    return f"cuda:{index}" if index >= 0 else "cpu"


def _like(machine: Machine, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``zeros_like`` and friends: on the device of their tensor unless told otherwise."""
    local = machine.local

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        kwargs.pop("pin_memory", None)
        if "generator" in kwargs:
            kwargs["generator"] = machine.generator_for(kwargs["generator"], tags.device_of(args[0]))
        if device is None:
            return original(*args, **kwargs)
        index = devices.index_of(machine, device)
        if index == OTHER:
            return original(*args, **kwargs)
        kwargs["device"] = _physical(machine, index)
        before, local.pending = local.pending, index
        try:
            return original(*args, **kwargs)
        finally:
            local.pending = before

    return make


def method(machine: Machine, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """``x.new_zeros`` and friends: on the device of x unless told otherwise."""
    from_data = name in _FROM_DATA or name == "new"
    local = machine.local

    @functools.wraps(original)
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        index = tags.device_of(self) if device is None else devices.index_of(machine, device)
        if index == OTHER:
            return original(self, *args, **kwargs)
        pinned = kwargs.pop("pin_memory", False)
        if name != "new" and (device is not None or index >= 0):
            kwargs["device"] = _physical(machine, index)
        before, local.pending = local.pending, index
        try:
            result = original(self, *args, **kwargs)
        finally:
            local.pending = before
        return _placed(machine, result, index, name, args, pinned, from_data)

    return make


def _from_host(machine: Machine, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        return tags.put(machine, result, HOST, f"torch.{name}") if tags.tag_of(result) is None else result

    return make


def _constructor(machine: Machine) -> Callable[..., Any]:
    """``torch.Tensor(2, 3)``: on the default device."""
    original = torch._C.TensorBase.__new__
    local = machine.local

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        before, local.pending = local.pending, devices.default_index(machine)
        try:
            return original(cls, *args, **kwargs)
        finally:
            local.pending = before

    return new


def _known_to_script(patches: Patches, builtins: dict[int, str]) -> None:
    """TorchScript finds its built-in functions by identity: it has to know ours too."""
    import torch.jit._builtins as table

    known = table._get_builtin_table()
    for identity, name in builtins.items():
        patches.set_item(known, identity, f"aten::{name}")

"""Storages, saved files, copies: the device travels with them."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from torchport.inside.vcuda import cuda, devices, syncs, tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST

# torch.save leaves the storages it wrote in a garbage cycle. In older torch (2.8) the collector then clears their
# attributes, the tag among them, though a tensor still holds them. It leaves alone what it does not track.
_untrack = ctypes.pythonapi.PyObject_GC_UnTrack
_untrack.argtypes, _untrack.restype = (ctypes.py_object,), None


def install(patches: Patches, machine: Machine) -> None:
    """Lets storages say where they are, and files remember it."""
    _storages(patches, machine)
    _files(patches, machine)


def device_text(storage: Any) -> str:
    """``cuda:0`` or ``cpu``."""
    tag = storage._vcuda
    return "cpu" if tag is None or tag.device < 0 else f"cuda:{tag.device}"


def _storages(patches: Patches, machine: Machine) -> None:
    cls = torch.UntypedStorage
    raw_new, raw_device = torch._C.StorageBase.__new__, torch._C.StorageBase.device.__get__
    raw_clone = cls.clone

    def new(kind: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        index = HOST if device is None else devices.index_of(machine, device)
        if index == devices.OTHER:
            return raw_new(kind, *args, device=device, **kwargs)
        if index >= 0 and machine.options.backing == "meta":
            storage = raw_new(kind, *args, device="meta", **kwargs)
        else:
            storage = raw_new(kind, *args, **kwargs)
        tags.tag_storage(machine, storage, index, "torch.UntypedStorage")
        return storage

    def device(self: Any) -> torch.device:
        tag = self._vcuda
        if tag is None or tag.device < 0:
            return raw_device(self)
        return torch.device("cuda", tag.device)

    def clone(self: Any) -> Any:
        tag = self._vcuda
        if tag is None or tag.device < 0:
            return raw_clone(self)
        result = raw_new(cls, self.nbytes(), device=raw_device(self))
        if raw_device(self).type != "meta":
            result.copy_(self)
        tags.tag_storage(machine, result, tag.device, tag.origin.op).origin.kind = tag.origin.kind
        return result

    patches.set(cls, "__new__", staticmethod(new))
    patches.set(cls, "device", property(device))
    patches.set(cls, "is_cuda", property(lambda self: device(self).type == "cuda"))
    patches.set(cls, "clone", clone)
    patches.set(cls, "cpu", lambda self: _moved_storage(machine, self, HOST) if device(self).type == "cuda" else self)
    patches.set(
        cls,
        "cuda",
        lambda self, device=None, non_blocking=False: _moved_storage(
            machine, self, devices.index_of(machine, "cuda" if device is None else device)
        ),
    )


def _moved_storage(machine: Machine, storage: Any, target: int) -> Any:
    tag = storage._vcuda
    if (HOST if tag is None else tag.device) == target:
        return storage
    shapes_only = machine.options.backing == "meta"
    backed = {"device": "meta"} if shapes_only and target >= 0 else {}
    result = torch._C.StorageBase.__new__(torch.UntypedStorage, storage.nbytes(), **backed)
    if not shapes_only:
        result.copy_(storage)
    elif target == HOST:
        result.fill_(0)
    tags.tag_storage(machine, result, target, "torch.UntypedStorage")
    return result


def _files(patches: Patches, machine: Machine) -> None:
    registry = torch.serialization._package_registry
    before = list(registry)
    patches.on_undo(lambda: registry.__setitem__(slice(None), before))

    def location(storage: Any) -> str | None:
        untyped = getattr(storage, "_untyped_storage", storage)
        _untrack(untyped)
        text = device_text(untyped)
        return None if text == "cpu" else text

    def restore(storage: Any, place: str) -> Any:
        if not str(place).startswith("cuda"):
            return None
        index = _validated(machine, str(place))
        untyped = getattr(storage, "_untyped_storage", storage)
        moved = untyped
        if machine.options.backing == "meta":
            moved = torch._C.StorageBase.__new__(torch.UntypedStorage, untyped.nbytes(), device="meta")
        tags.tag_storage(machine, moved, index, "torch.load")
        counts = machine.moved["h2d"]
        counts[0] += 1
        counts[1] += untyped.nbytes()
        syncs.waited(machine, "torch.load", reported=False)
        return moved

    torch.serialization.register_package(0, location, restore)


def _validated(machine: Machine, place: str) -> int:
    index = torch.device(place).index
    if index is None:
        index = machine.current
    count = cuda.device_count(machine)
    if count == 0:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
            f"{count}. Please use torch.load with map_location to map your storages to an existing device."
        )
    return index

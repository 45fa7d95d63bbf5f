"""``torch.device(0)``: a number is a card, also in a build without one.

torch.device is a class of C that cannot be subclassed; a CPU wheel asks for its accelerator when it is given a number.
Its constructor becomes one of Python, as a class of Python has it: the slot that calls ``__new__``, and a ``__new__``.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import torch

from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_TP_NEW = 65  # Py_tp_new of CPython's typeslots.h
_POINTER = ctypes.sizeof(ctypes.c_void_p)


class _Python:
    """Any class with a __new__ of its own: where the slot's pointer is read from."""

    def __new__(cls) -> _Python:
        return super().__new__(cls)


def install(patches: Patches, machine: Machine) -> None:
    """Does nothing where torch takes numbers by itself, or where Python is not CPython."""
    try:
        torch.device(0)
        return
    except RuntimeError:
        pass
    place = _slot(torch.device)
    if place is None:
        return
    before = place.value
    assert before is not None
    raw = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(before)

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and args[0].__class__ is int:
            args = ("cuda", args[0])
        elif not args and kwargs.get("device").__class__ is int:
            args, kwargs = ("cuda", kwargs["device"]), {}
        return raw(cls, args, id(kwargs) if kwargs else None)

    names: dict[str, Any] = gc.get_referents(vars(torch.device))[0]
    patches.set_item(names, "__new__", staticmethod(new))
    place.value = _address(_Python)
    modified = ctypes.pythonapi.PyType_Modified
    modified.argtypes, modified.restype = (ctypes.py_object,), None
    modified(torch.device)

    def undo() -> None:
        place.value = before
        modified(torch.device)

    patches.on_undo(undo)


def _address(cls: type) -> int | None:
    get = ctypes.pythonapi.PyType_GetSlot
    get.argtypes, get.restype = (ctypes.py_object, ctypes.c_int), ctypes.c_void_p
    return get(cls, _TP_NEW)


def _slot(cls: type) -> Any:
    """Where a class keeps the pointer to its constructor."""
    try:
        wanted = _address(cls)
    except AttributeError:  # not CPython
        return None
    for offset in range(0, object.__getattribute__(type, "__basicsize__"), _POINTER):
        place = ctypes.c_void_p.from_address(id(cls) + offset)
        if place.value == wanted:
            return place
    return None

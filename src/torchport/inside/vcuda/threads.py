"""Other threads and other processes: modes are a thread's own, and CUDA does not survive a fork."""

from __future__ import annotations

import functools
import os
import subprocess
import threading
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.floor import Floor
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches


def install(patches: Patches, machine: Machine, floor: Floor) -> None:
    """Enters the floor in every new thread, and marks forked children."""
    raw: Callable[..., Any] = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap(self: Any) -> None:
        if not alive[0]:
            raw(self)
            return
        with floor:
            raw(self)

    alive = [True]
    patches.set(threading.Thread, "_bootstrap_inner", bootstrap)

    def forked() -> None:
        if alive[0]:
            machine.forked = machine.initialized
            machine.in_child = True

    # A fork handler cannot be taken back: it looks at the flag instead.
    os.register_at_fork(after_in_child=forked)
    patches.on_undo(lambda: alive.__setitem__(0, False))
    _after_fork(patches, machine)
    _queues(patches, machine)
    _programs(patches, machine)


def _programs(patches: Patches, machine: Machine) -> None:
    """Other Python programs that the script starts run without virtual cards: said, not followed."""
    raw = subprocess.Popen.__init__

    @functools.wraps(raw)
    def start(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        first = args if isinstance(args, (str, bytes, os.PathLike)) else next(iter(args), "")
        program = os.path.basename(os.fsdecode(first).split(" ")[0])
        if program.startswith(("python", "torchrun")):
            machine.faults.remark("R507", what=program, text="it runs outside of the rehearsal")
        raw(self, args, *rest, **options)

    patches.set(subprocess.Popen, "__init__", start)


def _after_fork(patches: Patches, machine: Machine) -> None:
    """The first use of a card in a child that was forked after its parent had used one: refused, or healed for good."""
    raw = torch.cuda._lazy_init

    def lazy_init() -> None:
        if machine.forked:
            try:
                raw()
            except RuntimeError as error:
                said = str(error)
                machine.faults.refuse("R107", said, RuntimeError, op="fork")
                machine.forked = False
                return
        raw()

    patches.set(torch.cuda, "_lazy_init", lazy_init)


def _queues(patches: Patches, machine: Machine) -> None:
    """A tensor sent to another process arrives on the card that it was on."""
    table: dict[Any, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    import torch.multiprocessing.reductions  # registers torch's own reducers

    for cls in (torch.Tensor, torch.nn.Parameter):
        patches.set_item(table, cls, _with_device(table[cls]))
    patches.set_item(table, torch.UntypedStorage, _as_host(table[torch.UntypedStorage]))


def _with_device(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def reduce(tensor: Any) -> Any:
        device = tags.device_of(tensor)
        if device < 0:
            return original(tensor)
        rebuild, args = _as_host(original)(tensor)
        return received, (device, rebuild, args)

    return reduce


def _as_host(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """torch would share what is on a card by a handle of the driver's; host memory goes through a file."""

    def reduce(item: Any) -> Any:
        storage = item if isinstance(item, torch.UntypedStorage) else tags.storage_of(item)
        tag, storage._vcuda = storage._vcuda, None
        try:
            return original(item)
        finally:
            storage._vcuda = tag

    return reduce


def received(device: int, rebuild: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The other end: rebuilds the tensor and puts it on its card, if this process has one."""
    from torchport.inside import vcuda

    tensor = rebuild(*args)
    session = vcuda.current()
    return tensor if session is None else tags.put(session.machine, tensor, device, "multiprocessing")

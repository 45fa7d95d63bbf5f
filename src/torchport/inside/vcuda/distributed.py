"""torch.distributed: process groups that answer "nccl" and have gloo underneath.

torch's own Python makes the group; what it takes for ProcessGroupNCCL is a ProcessGroupGloo that also serves host
memory, which is where virtual cards are.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchport.inside.vcuda import cuda, devices, functional, gloo, replicas
from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.collectives import Collectives, Group
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches

_NCCL_TIMEOUT = timedelta(minutes=10)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def install(patches: Patches, machine: Machine, floor: TorchDispatchMode) -> None:
    """Makes NCCL available, where torch was built with gloo."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return
    collectives = Collectives(machine)
    machine.collective = functional.router(collectives)
    _nccl(patches, machine)
    _groups(patches, machine, collectives)
    _reductions(patches, machine)
    _works(patches, collectives, floor)
    _rendezvous(patches)
    if machine.options.backing == "meta":
        _objects(patches, machine)
    replicas.install(patches, machine)


class _Options:
    """ProcessGroupNCCL.Options: kept and shown, of no effect but for the timeout."""

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.backend = "nccl"
        self.is_high_priority_stream = is_high_priority_stream
        self.config = SimpleNamespace(blocking=1, cga_cluster_size=4, min_ctas=1, max_ctas=32, cta_policy=0)
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""
        self.split_from: Any = None
        self.split_color = 0
        self._timeout = _NCCL_TIMEOUT


@contextmanager
def _silence() -> Iterator[None]:
    """Some versions of gloo tell on standard output that they have connected, which NCCL does not."""
    if not (2, 5) <= TORCH < (2, 9):
        yield
        return
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _stand_in(machine: Machine) -> Any:
    base: Any = torch._C._distributed_c10d.ProcessGroupGloo

    class ProcessGroupNCCL(base):
        """Gloo under NCCL's name."""

        Options = _Options
        NCCLConfig = SimpleNamespace
        NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_EFFICIENCY, NCCL_CTA_POLICY_ZERO = 0, 1, 2
        supports_splitting = False
        supports_coalescing = False

        def __init__(
            self, store: Any, rank: int, size: int, options: Any = None, timeout: Any = None, **kwargs: Any
        ) -> None:
            if cuda.device_count(machine) == 0:
                raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
            if isinstance(options, timedelta):
                options, timeout = None, options
            self._nccl_options = options or _Options()
            with _silence():
                super().__init__(store, rank, size, timeout=timeout or self._nccl_options._timeout)

        @property
        def options(self) -> Any:
            return self._nccl_options

        def name(self) -> str:
            return "nccl"

        def _shutdown(self) -> None:
            """Releases nothing: gloo ends with its object."""

        shutdown = abort = _group_start = _group_end = _shutdown

        def _add_ephemeral_timeout(self, timeout: timedelta) -> None:
            """Of no effect: gloo reads its timeout at every call."""

        def perform_nocolor_split(self, device: torch.device) -> None:
            """Nothing is split."""

        eager_connect_single_device = perform_nocolor_split

    ProcessGroupNCCL.__module__ = "torch.distributed.distributed_c10d"
    ProcessGroupNCCL.__qualname__ = "ProcessGroupNCCL"
    return ProcessGroupNCCL


def _nccl(patches: Patches, machine: Machine) -> None:
    from torch.distributed import constants, distributed_c10d

    stand_in = _stand_in(machine)
    for owner in (torch._C._distributed_c10d, distributed_c10d, torch.distributed):
        for name in ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
            if name == "ProcessGroupNCCL" or hasattr(owner, name):
                patches.set(owner, name, stand_in)
    patches.set(distributed_c10d, "_NCCL_AVAILABLE", True)
    for module in (constants, distributed_c10d):
        patches.set(module, "default_pg_nccl_timeout", _NCCL_TIMEOUT)


def _groups(patches: Patches, machine: Machine, collectives: Collectives) -> None:
    cls: Any = torch._C._distributed_c10d.ProcessGroup
    wrapper: Any = torch._C._distributed_c10d._ProcessGroupWrapper
    stand_in: Any = torch._C._distributed_c10d.ProcessGroupNCCL
    raw_register, raw_types, raw_barrier = cls._register_backend, cls._device_types.__get__, cls.barrier
    raw_name = cls._get_backend_name
    host = torch.device("cpu")

    def register(self: Any, device: torch.device, kind: Any, backend: Any = None) -> None:
        raw_register(self, device, kind, backend)
        group = collectives.groups.get(self)
        inner = backend.wrapped_pg if isinstance(backend, wrapper) else backend
        if not isinstance(inner, stand_in):
            if group is not None and device == host:
                group.host = True  # named after NCCL: it takes the place of the hidden one
            return
        if group is None:
            group = collectives.add(self, Group(nccl=True, backend=(backend, inner)))
        if host in raw_types(self):
            group.host = True
        else:
            raw_register(self, host, kind, backend)

    def types(self: Any) -> list[torch.device]:
        group = collectives.groups.get(self)
        found = raw_types(self)
        if machine.local.objects:
            return [host]
        return found if group is None or not group.nccl or group.host else [each for each in found if each != host]

    def barrier(self: Any, *args: Any, **kwargs: Any) -> Any:
        for options in (*args, *kwargs.values()):
            if hasattr(options, "device_ids"):
                if options.device_ids:
                    machine.local.barrier = devices.index_of(machine, options.device_ids[0])
                # C++ would make its tensor on that card.
                options.device_ids, options.device = [], host
        return raw_barrier(self, *args, **kwargs)

    def backend_name(self: Any) -> str:
        group = collectives.groups.get(self)
        return "nccl" if group is not None and group.nccl else raw_name(self)

    patches.set(cls, "_register_backend", register)
    patches.set(cls, "_device_types", property(types))
    patches.set(cls, "barrier", barrier)
    patches.set(cls, "_get_backend_name", backend_name)
    _coalescing(patches, collectives, cls)


def _coalescing(patches: Patches, collectives: Collectives, cls: Any) -> None:
    """Calls gathered into one, as NCCL's group calls are: gloo runs them one after another, their Work is one."""
    raw_start, raw_end = cls._start_coalescing, cls._end_coalescing

    def start(self: Any, device: torch.device) -> None:
        group = collectives.group(self)
        if not group.nccl:
            return raw_start(self, device)
        group.coalescing = []
        return None

    def end(self: Any, device: torch.device) -> Any:
        group = collectives.group(self)
        if not group.nccl:
            return raw_end(self, device)
        works, group.coalescing = group.coalescing or [], None
        handle = gloo.together(works)
        calls = [collectives.waiting.pop(work) for work in works if work in collectives.waiting]
        if calls:
            collectives.waiting[handle] = calls[0]
        return handle

    patches.set(cls, "_start_coalescing", start)
    patches.set(cls, "_end_coalescing", end)


def _reductions(patches: Patches, machine: Machine) -> None:
    """Averages and scaled sums: gloo adds, what it has added is scaled afterwards."""
    c10d: Any = torch._C._distributed_c10d
    operation = c10d.ReduceOp

    def scale_of(op: Any, pg: Any) -> float | None:
        if op == operation.AVG:
            return 1.0 / float(pg.size())
        if op == operation.PREMUL_SUM:
            return float(op.__getstate__()[1])
        return None

    def scaled(raw: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(raw)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            options = next((each for each in (*args, *kwargs.values()) if hasattr(each, "reduceOp")), None)
            if options is not None:
                scale = scale_of(options.reduceOp, self)
                if scale is not None:
                    before, options.reduceOp = options.reduceOp, operation.SUM
                    machine.local.scale = scale
                    try:
                        return raw(self, *args, **kwargs)
                    finally:
                        options.reduceOp, machine.local.scale = before, None
                return raw(self, *args, **kwargs)
            kinds = (operation, operation.RedOpType)
            op = next((each for each in (*args, *kwargs.values()) if isinstance(each, kinds)), None)
            scale = None if op is None else scale_of(op, self)
            if scale is None:
                return raw(self, *args, **kwargs)
            machine.local.scale = scale
            try:
                return raw(
                    self,
                    *(operation.SUM if each is op else each for each in args),
                    **{key: operation.SUM if each is op else each for key, each in kwargs.items()},
                )
            finally:
                machine.local.scale = None

        return call

    for name in (
        "allreduce",
        "allreduce_coalesced",
        "reduce",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_single",
        "reduce_scatter_tensor_coalesced",
        "reduce_scatter_single_coalesced",
    ):
        raw = getattr(c10d.ProcessGroup, name, None)
        if raw is not None:
            patches.set(c10d.ProcessGroup, name, scaled(raw))


def _works(patches: Patches, collectives: Collectives, floor: TorchDispatchMode) -> None:
    """Who waits for what, and callbacks of futures, which run on threads of gloo."""
    work: Any = torch._C._distributed_c10d.Work
    raw_wait = work.wait

    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        return collectives.waits(raw_wait, self, *args, **kwargs)

    patches.set(work, "wait", wait)
    future: Any = torch._C.Future

    def seen(raw: Callable[..., Any]) -> Callable[..., Any]:
        def add(self: Any, callback: Callable[[Any], Any]) -> Any:
            def call(done: Any) -> Any:
                if torch._C._len_torch_dispatch_stack():
                    return callback(done)
                with floor:
                    return callback(done)

            return raw(self, call)

        return add

    for name in ("then", "add_done_callback"):
        patches.set(future, name, seen(getattr(future, name)))


def _objects(patches: Patches, machine: Machine) -> None:
    """Shapes only: objects travel as bytes, which a card without numbers would lose."""
    from torch.distributed import distributed_c10d

    def on_host(raw: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(raw)
        def call(*args: Any, **kwargs: Any) -> Any:
            machine.local.objects += 1
            try:
                return raw(*args, **kwargs)
            finally:
                machine.local.objects -= 1

        return call

    for name in ("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"):
        wrapped = on_host(getattr(distributed_c10d, name))
        for module in (distributed_c10d, torch.distributed):
            patches.set(module, name, wrapped)


def _rendezvous(patches: Patches) -> None:
    """All ranks of a rehearsal are on this machine, whatever address the job uses on its cluster."""
    rendezvous: Any = import_module("torch.distributed.rendezvous")  # the attribute is a function
    raw = rendezvous._create_c10d_store

    @functools.wraps(raw)
    def create(hostname: str, *args: Any, **kwargs: Any) -> Any:
        return raw(hostname if hostname in _LOCAL_HOSTS else "127.0.0.1", *args, **kwargs)

    patches.set(rendezvous, "_create_c10d_store", create)

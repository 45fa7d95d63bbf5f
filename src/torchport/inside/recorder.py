"""The recorder: steps, losses, transfers, waits, memory and faults of one process, written to its record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchport.inside import memory_log, postmortem
from torchport.inside.places import Place, Places
from torchport.inside.run import StopRehearsal
from torchport.inside.vcuda import Session
from torchport.inside.vcuda.collectives import Call
from torchport.inside.vcuda.faults import Seen
from torchport.inside.vcuda.patches import Patches
from torchport.record import RecordWriter

_TOTALS_EVERY_S = 1.0
_FULL_DETAIL_STEPS = 50  # later steps write their memory curve once in a hundred


class Recorder:
    """Listens to one process. Without a session (a plain run) it notes steps and losses only."""

    def __init__(self, writer: RecordWriter, places: Places, session: Session | None, steps: int | None = None) -> None:
        self.writer = writer
        self.places = places
        self.session = session
        self.limit = steps
        self.step = 0
        self.loader_s = 0.0
        self.patches = Patches()
        self._sites: dict[Any, int] = {}
        self._lock = threading.RLock()
        self._memory = memory_log.MemoryLog(session.machine.gpus) if session else None
        self._started = self._step_started = self._last_totals = time.perf_counter()
        self._ops = self._syncs = 0
        self._ended = False

    def install(self) -> None:
        """Hooks into backward, optimizers and data loaders; ``uninstall`` takes the hooks back."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        hook = register_optimizer_step_post_hook(self._optimizer_stepped)
        self.patches.on_undo(hook.remove)
        self.patches.set(torch.autograd, "_engine_run_backward", self._engine())
        loader: Any = torch.utils.data.dataloader._BaseDataLoaderIter
        self.patches.set(loader, "__next__", self._next(loader.__next__))
        if self.session is not None:
            self.session.machine.faults.sink = self._fault
            self.session.machine.on_collective = self._collective

    def uninstall(self) -> None:
        """Takes the hooks back."""
        self.patches.undo()

    def start_over(self, writer: RecordWriter) -> None:
        """This process is a fork: what its parent has seen is in the parent's record."""
        self.writer = writer
        self.step, self.loader_s = 0, 0.0
        self._sites.clear()
        self._lock = threading.RLock()
        self._ended = False
        self._ops = self._syncs = 0
        if self.session is not None:
            machine = self.session.machine
            self._memory = memory_log.MemoryLog(machine.gpus)
            for seen in (machine.faults.seen, machine.syncs, machine.draws, machine.transfers):
                seen.clear()
            for operator in self.session.floor.operators.values():
                operator.count = 0
            machine.sync_count = machine.step = 0
        self.begin()

    def begin(self) -> None:
        """The program starts now."""
        self._started = self._step_started = time.perf_counter()

    def site(self, place: Place | None) -> int | None:
        """The number of a place, explained in the record at its first use."""
        if place is None:
            return None
        key = (place[0].co_filename, place[1])
        number = self._sites.get(key)
        if number is None:
            number = self._sites[key] = len(self._sites) + 1
            path, function = self.places.path(place), place[0].co_name
            self.writer.write({"kind": "site", "id": number, "path": path, "line": place[1], "function": function})
        return number

    # What happens

    def _fault(self, seen: Seen) -> None:
        with self._lock:
            self.writer.write(
                {
                    "kind": "finding",
                    "number": seen.number,
                    "id": seen.id,
                    "severity": seen.severity,
                    "fields": self._plain(seen.fields),
                    "site": self.site(seen.place),
                    "step": seen.step,
                }
            )
            self.writer.flush()

    def _collective(self, call: Call, state: str) -> None:
        """Written at once: whoever watches from outside learns from it which ranks wait for which."""
        event = {
            "kind": "collective",
            "group": call.group,
            "ranks": call.ranks,
            "sequence": call.sequence,
            "op": call.op,
            "shapes": call.shapes,
            "dtype": call.dtype,
            "bytes": call.bytes,
            "state": state,
        }
        with self._lock:
            event["site"] = self.site(call.place)
            self.writer.write(event)
            self.writer.flush()

    def _plain(self, value: Any) -> Any:
        """Places inside a fault's fields become ``{"site": n}``."""
        if isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "co_filename"):
            return {"site": self.site(value)}
        if isinstance(value, dict):
            return {("site" if key == "place" else key): self._plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        return value

    def _engine(self) -> Callable[..., Any]:
        original = torch.autograd._engine_run_backward

        def engine(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("accumulate_grad"):
                self._backward(tensors)
            return original(tensors, *args, **kwargs)

        return engine

    def _backward(self, tensors: Any) -> None:
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and tensor.layout is torch.strided:
                try:
                    with _disable_current_modes():
                        value = torch._C.TensorBase.item(tensor.detach())
                except RuntimeError:  # no numbers: shapes only, or inside a function transform
                    return
                event = {
                    "kind": "loss",
                    "step": self.step + 1,
                    "value": float(value).hex(),
                    "site": self.site(self.places.here()),
                }
                with self._lock:
                    self.writer.write(event)
                return

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(loader: Any) -> Any:
            started = time.perf_counter()
            try:
                batch = original(loader)
            finally:
                self.loader_s += time.perf_counter() - started
            if self.session is not None:
                self.session.from_loader(batch)
            return batch

        return step

    def _optimizer_stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        with self._lock:
            self.step += 1
            self._write_step(optimizer)
        if self.limit is not None and self.step >= self.limit:
            # Raised again after every later step, should the program catch it.
            raise StopRehearsal

    def _write_step(self, optimizer: Any) -> None:
        now = time.perf_counter()
        event: dict[str, Any] = {
            "kind": "step",
            "number": self.step,
            "seconds": round(now - self._step_started, 6),
            "ops": 0,
            "syncs": 0,
            "h2d": [0, 0],
            "d2h": [0, 0],
            "d2d": [0, 0],
            "loader_s": round(self.loader_s, 6),
            "allocated": [],
            "peak": [],
        }
        self.loader_s = 0.0
        if self.session is not None and self._memory is not None:
            machine = self.session.machine
            ops = sum(operator.count for operator in self.session.floor.operators.values())
            event["ops"], self._ops = ops - self._ops, ops
            event["syncs"], self._syncs = machine.sync_count - self._syncs, machine.sync_count
            for direction, counts in machine.moved.items():
                event[direction] = list(counts)
                counts[:] = [0, 0]
            machine.step = self.step
            self._memory.classify(optimizer, self.step, self.places.frames())
            event["allocated"] = [gpu.allocated for gpu in machine.gpus]
            event["peak"] = self._write_memory()
        self.writer.write(event)
        if now - self._last_totals > _TOTALS_EVERY_S:
            self._write_totals()
            self._last_totals = now
        self.writer.flush()
        self._step_started = time.perf_counter()

    def _write_memory(self) -> list[int]:
        assert self._memory is not None
        peaks = []
        detail = self.step <= _FULL_DETAIL_STEPS or self.step % 100 == 0
        for curve in self._memory.drain():
            peaks.append(curve.peak_bytes)
            if detail and curve.points:
                self.writer.write({"kind": "memory", "gpu": curve.gpu, "step": self.step, "points": curve.points})
            if curve.holders is not None:
                holders = [
                    [what, module, self.site(place), size, count] for what, module, place, size, count in curve.holders
                ]
                self.writer.write(
                    {
                        "kind": "peak",
                        "gpu": curve.gpu,
                        "bytes": curve.peak_bytes,
                        "step": self.step,
                        "holders": holders,
                    }
                )
        return peaks

    def _write_totals(self) -> None:
        if self.session is None:
            return
        machine = self.session.machine
        operators = [[o.name, o.count] for o in list(self.session.floor.operators.values()) if o.count]
        operators.sort(key=lambda row: -row[1])
        self.writer.write(
            {
                "kind": "totals",
                "operators": operators,
                "gpu_bytes": sum(gpu.total_allocated for gpu in machine.gpus),
                "syncs": [[self.site(place), op, n] for (place, op), n in list(machine.syncs.items())],
                "draws": [[self.site(place), op, n] for (place, op), n in list(machine.draws.items())],
                "transfers": [
                    [self.site(place), direction, pinned, count, size]
                    for (place, direction, pinned, _), (count, size) in list(machine.transfers.items())
                ],
                "findings": [[seen.number, seen.count] for seen in self.session.findings],
            }
        )

    def finish(self, code: int, reason: str, error: BaseException | None = None) -> None:
        """The program has ended; what is written after this belongs to its atexit handlers."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            if self._memory is not None:
                self._write_memory()
            said = None
            if error is not None:
                place = self._error_place(error)
                said = {"type": type(error).__name__, "message": str(error), "site": self.site(place)}
                if self.session is not None:
                    postmortem.note(self.session.machine.faults, error, place)
            self._write_totals()
            self.writer.write(
                {
                    "kind": "exit",
                    "code": code,
                    "reason": reason,
                    "error": said,
                    "seconds": round(time.perf_counter() - self._started, 3),
                }
            )
            self.writer.flush()

    def _error_place(self, error: BaseException) -> Place | None:
        """Where in the user's source an exception came up last."""
        trace, found = error.__traceback__, None
        while trace is not None:
            if self.places.is_project(trace.tb_frame.f_code.co_filename):
                found = (trace.tb_frame.f_code, trace.tb_lineno)
            trace = trace.tb_next
        return found

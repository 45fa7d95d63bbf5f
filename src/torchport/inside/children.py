"""Processes that the program starts with multiprocessing: they get the virtual cards and a record of their own.

A spawned child learns of us from the data with which multiprocessing prepares it, which holds for ``spawn`` and
``forkserver`` alike: as it is unpickled, before any code of the user's, it enters the device.
"""

from __future__ import annotations

import multiprocessing.spawn
import os
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import Any

from torchport.inside.recorder import Recorder
from torchport.inside.run import StopRehearsal
from torchport.inside.uncaught import peel
from torchport.record import RecordWriter

Json = dict[str, Any]

# A child that does none of these and raises nothing leaves no record: a worker that loads data, say.
_TELLING = frozenset({"finding", "loss", "step", "collective"})
# Evaluated in the child, which cannot import us by name before.
_ENTER = (
    "__import__('sys').path.insert(0, private) or "
    "__import__('torchport.inside.rehearsal', fromlist=['child']).child(spec, private, prepared)"
)


class ChildRecord(RecordWriter):
    """A record that comes to be with the first event that tells something, under the next free name."""

    def __init__(self, folder: str, header: Mapping[str, Any]) -> None:
        self.path = folder
        self.broken = None
        self._header = header
        self._held: list[Mapping[str, Any]] | None = []
        self._ranked = False

    def write(self, event: Mapping[str, Any]) -> None:
        """Keeps the event until there is a record."""
        if event["kind"] == "collective" and not self._ranked:
            self._ranked = True
            self.write(_rank())
        if self._held is None:
            super().write(event)
            return
        self._held.append(event)
        if event["kind"] in _TELLING or event.get("error"):
            self._open()

    def flush(self) -> None:
        """Writes what waits, if there is a record."""
        if self._held is None:
            super().flush()

    def close(self) -> None:
        """Flushes and closes, if there is a record."""
        if self._held is None:
            super().close()

    def _open(self) -> None:
        held, self._held = self._held or [], None
        super().__init__(_next_name(self.path), self._header)
        for event in held:
            super().write(event)


def _next_name(folder: str) -> str:
    number = 0
    while True:
        number += 1
        path = os.path.join(folder, f"record-spawn-{number}.jsonl")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            continue
        except OSError:
            pass  # the record says what is wrong as it is opened
        return path


def _rank() -> Json:
    import torch.distributed as dist

    return {"kind": "rank", "rank": dist.get_rank(), "world": dist.get_world_size()}


class _Prepared(Json):
    """What multiprocessing tells a new child, which enters the device as it reads it."""

    spec: Json
    private: str

    def __reduce__(self) -> Any:
        return eval, (_ENTER, {"spec": self.spec, "private": self.private, "prepared": dict(self)})


def install(recorder: Recorder, spec: Json, private: str, header: Callable[[], Json]) -> None:
    """Follows the processes that this one starts, forked ones included."""
    folder = os.path.dirname(os.path.abspath(spec["record"]))
    raw = multiprocessing.spawn.get_preparation_data

    def prepared(name: str) -> Json:
        data = _Prepared(raw(name))
        data.spec, data.private = spec, private
        return data

    recorder.patches.set(multiprocessing.spawn, "get_preparation_data", prepared)
    recorder.patches.set(BaseProcess, "_bootstrap", _bootstrap(recorder, BaseProcess._bootstrap))  # type: ignore[attr-defined]
    alive = [True]

    def forked() -> None:
        if alive[0]:
            recorder.start_over(ChildRecord(folder, header()))

    os.register_at_fork(after_in_child=forked)
    recorder.patches.on_undo(lambda: alive.__setitem__(0, False))


def _bootstrap(recorder: Recorder, original: Callable[..., int]) -> Callable[..., int]:
    """The body of a child process: how it ends goes into its record."""

    def bootstrap(self: Any, *args: Any, **kwargs: Any) -> int:
        run = self.run

        def watched() -> None:
            try:
                run()
            except BaseException as error:
                error.__traceback__ = peel(error.__traceback__)
                recorder.finish(*_outcome(error))
                raise
            recorder.finish(0, "finished")

        self.run = watched
        return original(self, *args, **kwargs)

    return bootstrap


def _outcome(error: BaseException) -> tuple[int, str, BaseException | None]:
    if isinstance(error, StopRehearsal):
        return 0, "steps", None
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return code, "finished" if code == 0 else "error", None
    if isinstance(error, KeyboardInterrupt):
        return 130, "interrupted", error
    return 1, "error", error

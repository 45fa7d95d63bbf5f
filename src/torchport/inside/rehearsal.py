"""One process of a rehearsal: the virtual device, the recorder and the user's program, put together."""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import random
import sys
from importlib.machinery import PathFinder
from typing import Any

import torch

import torchport
from torchport.hardware.gpus import lookup
from torchport.inside import children, vcuda
from torchport.inside.places import Places
from torchport.inside.recorder import Recorder
from torchport.inside.run import Outcome, run
from torchport.inside.vcuda.machine import Options
from torchport.record import RecordWriter

_active: list[Recorder] = []


def main(spec: dict[str, Any], private: str) -> None:
    """Runs what ``spec`` asks for; the process then ends as the program would have ended it."""
    status: list[int] = []
    atexit.register(_leave, status)  # the first that is registered is the last that runs
    recorder = begin(spec, private, RecordWriter(spec["record"], _header(spec)))
    run(spec["kind"], spec["argv"], before=lambda: _ready(recorder), on_end=lambda end: _end(recorder, end, status))


def child(spec: dict[str, Any], private: str, prepared: dict[str, Any]) -> dict[str, Any]:
    """A process that the program started with multiprocessing: called before it reads any code of the user's."""
    sys.path[:] = [entry for entry in sys.path if entry != private]
    folder = os.path.dirname(os.path.abspath(spec["record"]))
    _ready(begin(spec, private, children.ChildRecord(folder, _header(spec))))
    return prepared


def begin(spec: dict[str, Any], private: str, writer: RecordWriter) -> Recorder:
    """Gives this process its cards, unless it is a plain run, and records what it does."""
    session = None
    if spec.get("seed") is not None:
        _seed(spec["seed"])
    if spec.get("plain"):
        places = Places(spec["project"])
    else:
        options = Options(spec["gpus"], spec["strict"], spec["backing"], spec["project"])
        session = vcuda.Session(lookup(spec["gpu"]), options)
        session.enter()
        places = session.machine.places
    recorder = Recorder(writer, places, session, spec.get("steps"))
    recorder.install()
    children.install(recorder, spec, private, lambda: _header(spec))
    _active.append(recorder)
    return recorder


def _seed(seed: int) -> None:
    """Every generator that a program may draw from without asking for one of its own."""
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _header(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": torchport.__version__,
        "rank": spec.get("rank", 0),
        "world": spec.get("world", 1),
        "pid": os.getpid(),
        "plan": {key: value for key, value in spec.items() if key != "record"},
        "facts": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "executable": sys.executable,
        },
    }


def _ready(recorder: Recorder) -> None:
    """The last moment before user code: the user's own torchport, if there is one, becomes visible."""
    spec = PathFinder.find_spec("torchport", [entry for entry in sys.path if entry])
    if spec is not None and spec.submodule_search_locations:
        torchport.__path__.extend(spec.submodule_search_locations)
    recorder.begin()


def _end(recorder: Recorder, outcome: Outcome, status: list[int]) -> None:
    recorder.finish(outcome.status, outcome.reason, outcome.error)
    if outcome.reason != "interrupted":  # that ends by the signal
        status.append(outcome.status)


def _leave(status: list[int]) -> None:
    """Ends a process that may have been a rank, when all of Python's own end is done.

    gloo stands for NCCL here; where something of the program still holds a group, its threads now and then abort the
    process while the interpreter takes its objects apart.
    """
    if status and "MASTER_ADDR" in os.environ and "torch.distributed" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status[0])

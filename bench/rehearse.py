"""What a rehearsal costs: seconds a step beside plain CPU and torch's own shape simulation, on the same workloads.

    python bench/rehearse.py [--rounds 5] [--json FILE]

Plain CPU, rehearsal (with its recorder), a dispatch mode that only passes calls on (the least that seeing every
operator costs) and FakeTensorMode with MemTracker take turns in one process, so that a noisy machine hits all alike;
medians are shown. "Added" is (rehearsal - plain) / operators dispatched a step.
Bars: under 25 us an operator; under 1.15 times plain CPU on ResNet-18 and the transformer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parent))
from workloads import WORKLOADS, Workload

from torchport.inside.recorder import Recorder
from torchport.inside.vcuda import virtual_cuda
from torchport.record import RecordWriter

Step = Callable[[], None]


def training_step(work: Workload, device: str) -> Step:
    """A closure that does one SGD step; data and model are made by the caller's modes."""
    torch.manual_seed(0)
    model, (x, y) = work.build(), work.batch()
    if device != "cpu":
        model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        work.loss(model(x), y).backward()
        optimizer.step()

    return step


@contextmanager
def rehearsal(work: Workload) -> Any:
    """A virtual card and a recorder, as ``torchport rehearse`` sets them up."""
    with (
        tempfile.TemporaryDirectory() as folder,
        virtual_cuda(backing="meta" if work.shapes_only else "cpu", project=os.path.dirname(__file__)) as session,
    ):
        recorder = Recorder(RecordWriter(f"{folder}/record.jsonl", {}), session.machine.places, session)
        recorder.install()
        try:
            yield session
        finally:
            recorder.uninstall()
            recorder.finish(0, "finished")


class Empty(TorchDispatchMode):
    """Passes each call on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def fake(work: Workload) -> Any:
    """torch's own: fake tensors, with the memory tracker on top."""
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode(), MemTracker() as tracker:
        yield tracker


def restarted(tracker: Any, step: Step) -> Step:
    """MemTracker wants its statistics reset before each step."""

    def one() -> None:
        tracker.reset_mod_stats()
        step()

    return one


def timed(step: Step, count: int) -> float:
    """Seconds a step, over ``count`` steps."""
    started = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - started) / count


def measure(work: Workload, rounds: int) -> dict[str, Any]:
    """One row: medians over ``rounds`` turns."""
    seconds: dict[str, list[float]] = {"plain": [], "rehearsal": [], "empty": [], "fake": []}
    operators = 0
    fake_error = None
    for _ in range(rounds):
        ways: tuple[tuple[str, AbstractContextManager[Any], str], ...] = (
            ("plain", nullcontext(), "cpu"),
            ("rehearsal", rehearsal(work), "cuda"),
            ("empty", Empty(), "cpu"),
            ("fake", fake(work), "cpu"),
        )
        for name, context, device in ways:
            if (name == "fake" and fake_error) or (name == "empty" and work.shapes_only):
                continue
            try:
                with context as session:
                    step = training_step(work, device)
                    if name == "fake":
                        step = restarted(session, step)
                    step()
                    if name == "rehearsal":
                        before = dispatched(session)
                        step()
                        operators = dispatched(session) - before
                    # The fake mode takes seconds a step where the others take milliseconds.
                    seconds[name].append(timed(step, 1 if name == "fake" else work.steps))
            except Exception as error:
                if name != "fake":
                    raise
                fake_error = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
    row: dict[str, Any] = {"workload": work.name, "operators": operators, "fake_error": fake_error}
    for name, values in seconds.items():
        row[name] = statistics.median(values) if values else None
    row["added_us"] = (row["rehearsal"] - row["plain"]) / operators * 1e6
    row["ratio"] = row["rehearsal"] / row["plain"]
    return row


def dispatched(session: Any) -> int:
    return sum(operator.count for operator in session.floor.operators.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(2)
    print(f"torch {torch.__version__}, 2 threads, {options.rounds} rounds; seconds a step, medians")
    columns = f"{'plain':>9}{'rehearsal':>11}{'ratio':>8}{'empty mode':>12}{'ratio':>8}{'fake+mem':>10}"
    print(f"{'workload':52}{columns}{'ops':>7}{'us/op added':>13}")
    rows = []
    for work in WORKLOADS:
        row = measure(work, options.rounds)
        rows.append(row)
        other = f"{row['fake']:10.4f}" if row["fake"] is not None else f"{'-':>10}"
        empty = (
            f"{row['empty']:12.4f}{row['empty'] / row['plain']:8.2f}"
            if row["empty"] is not None
            else f"{'-':>12}{'':8}"
        )
        added = "fewer" if row["added_us"] < 0 else f"{row['added_us']:.1f}"
        print(
            f"{row['workload']:52}{row['plain']:9.4f}{row['rehearsal']:11.4f}{row['ratio']:8.2f}{empty}{other}"
            f"{row['operators']:7d}{added:>13}",
            flush=True,
        )
        if row["fake_error"]:
            print(f"    FakeTensorMode with MemTracker: {row['fake_error']}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

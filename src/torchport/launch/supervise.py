"""Supervision: starts the ranks of a job and stays until the last one has ended, by itself or by us."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType

from torchport.launch.activity import Activity
from torchport.launch.children import Children
from torchport.launch.follow import Follower
from torchport.launch.hang import RankState, Verdict, first_failure, judge, judge_failure, judge_timeout
from torchport.launch.processes import Process
from torchport.process import send, start

LOOK_EVERY_S = 0.05
# How long a program may take to end after it was asked to, before it is killed.
END_WITHIN_S = 5.0
# How long the other ranks go on after one has failed: they may be about to say something of their own.
AFTER_FAILURE_S = 3.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended. ``codes`` are the ranks' exit codes in order (negative: the signal).

    ``reason`` is "ended", "failed" (a rank failed, and with it the job), "hung", "timeout" or "interrupted", then
    by ``signal``.
    """

    codes: tuple[int, ...]
    reason: str
    verdict: Verdict | None
    seconds: float
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a job is treated: the defaults are those of a rehearsal, which shares our terminal.

    ``output`` and ``errors`` are file descriptors for rank 0 in place of ours, with ``apart`` the first for both.
    ``own_group`` None gives several ranks groups of their own and leaves a single one in ours. ``keep`` are open
    files that the job holds open too. ``stop_on`` are the signals that end the job, ``relay`` those that are only
    passed on to it, by ``ask``. Once asked to end it has ``grace_s`` seconds, None for as long as it likes;
    ``sweep`` then ends what it has left behind.
    """

    output: int | None = None
    errors: int | None = None
    apart: bool = False
    own_group: bool | None = None
    keep: tuple[int, ...] = ()
    stop_on: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    relay: tuple[signal.Signals, ...] = ()
    ask: Callable[[subprocess.Popen[bytes], signal.Signals], None] = send
    grace_s: float | None = None
    sweep: Callable[[], object] = lambda: None


class _Rank:
    """A started process with what is known of its progress."""

    def __init__(self, process: Process, child: subprocess.Popen[bytes], now: float, follow: bool) -> None:
        self.process = process
        self.follow = follow
        self.child = child
        self.follower = Follower(process.record_path)
        self._activity = Activity()
        self._busy_at = now

    def look(self, now: float) -> RankState:
        """What the rank is doing. Time in a collective counts only while the rank computes nothing."""
        code = self.child.poll()
        if not self.follow:
            return RankState(self.process.rank, code)
        self.follower.look(now)
        if self._activity.busy(self.child.pid, now):
            self._busy_at = now
        waits = self.follower.waits_in()
        call, entered = waits if waits else (None, now)
        return RankState(
            rank=self.process.rank,
            code=code,
            inside=call,
            waits_s=now - max(entered, self._busy_at),
            passed=tuple(self.follower.passed),
            entered=self.follower.entered,
        )


def supervise(
    processes: Sequence[Process],
    *,
    folder: str,
    environ: Mapping[str, str],
    timeout_s: float | None = None,
    started: Callable[[int], None] = lambda pid: None,
    manner: Manner = Manner(),
) -> Ending:
    """Runs the ranks and returns how they ended.

    A single rank stays in our process group, so that it reads the terminal as it would alone. Several get
    groups of their own and a signal each. Raises ProgramMissing where the interpreter cannot be started.
    """
    begin = time.monotonic()
    several = len(processes) > 1
    if manner.own_group is None:
        manner = replace(manner, own_group=several)
    ranks: list[_Rank] = []
    children = Children(Path(processes[0].record_path).parent)
    with _signals(ranks, manner) as caught:
        try:
            for process in processes:
                child = _start(process, folder, environ, manner)
                ranks.append(_Rank(process, child, time.monotonic(), follow=several))
            started(ranks[0].child.pid)
            reason, verdict = _watch(ranks, children, caught, begin, timeout_s)
        finally:
            _stop(ranks, children, caught, manner)
    codes = tuple(rank.child.wait() for rank in ranks)
    return Ending(codes, reason, verdict, time.monotonic() - begin, caught[0] if caught else None)


def _start(process: Process, folder: str, environ: Mapping[str, str], manner: Manner) -> subprocess.Popen[bytes]:
    if process.spec_path is not None:
        Path(process.spec_path).write_text(process.spec, encoding="utf-8")
    environ = {**environ, **dict(process.env)}
    begin = partial(
        start, process.argv, folder=folder, environ=environ, own_group=bool(manner.own_group), keep=manner.keep
    )
    if process.log_path is None:
        return begin(stdout=manner.output, stderr=manner.errors, apart=manner.apart)
    with open(process.log_path, "wb") as log:
        return begin(stdout=log, apart=True)


def _watch(
    ranks: Sequence[_Rank], children: Children, caught: list[int], begin: float, timeout_s: float | None
) -> tuple[str, Verdict | None]:
    """Waits until all ranks have ended or there is a reason to stop them."""
    failed_at: float | None = None
    first: int | None = None
    while True:
        now = time.monotonic()
        states, spawned = [rank.look(now) for rank in ranks], children.look(now)
        if caught:
            return "interrupted", None
        first = first if first is not None else first_failure(states)
        if all(state.code is not None for state in states):
            return ("ended", None) if first is None else ("failed", judge_failure(states) or judge_failure(spawned))
        if (verdict := judge(states) or judge(spawned)) is not None:
            return ("hung" if first is None else "failed"), verdict
        if timeout_s is not None and now - begin > timeout_s:
            return "timeout", judge_timeout(states) or judge_timeout(spawned)
        if first is not None:
            failed_at = failed_at or now
            waiting = any(state.inside for state in states if state.code is None)
            if now - failed_at > (END_WITHIN_S + AFTER_FAILURE_S if waiting else AFTER_FAILURE_S):
                return "failed", judge_failure(states)
        time.sleep(LOOK_EVERY_S)


def _stop(ranks: Sequence[_Rank], children: Children, caught: list[int], manner: Manner) -> None:
    """Ends what still runs: as the user asked if they did, else politely, then for good."""
    if caught:
        _pass_on(ranks, caught, manner)
    for rank in ranks:
        send(rank.child, signal.SIGTERM)
    _wait(ranks, END_WITHIN_S)
    for rank in ranks:
        send(rank.child, signal.SIGKILL)
    _wait(ranks, None)
    children.send(signal.SIGKILL)
    manner.sweep()


def _pass_on(ranks: Sequence[_Rank], caught: list[int], manner: Manner) -> None:
    """Hands a signal on once and lets the program clean up in its time; the next signal kills it."""
    number = signal.SIGINT if caught[0] == signal.SIGINT else signal.SIGTERM
    # The terminal has sent its Ctrl-C to all of its foreground group, a single rank included.
    if not (number == signal.SIGINT and not manner.own_group and _in_foreground()):
        for rank in ranks:
            manner.ask(rank.child, number)
    seen = len(caught)
    end = None if manner.grace_s is None else time.monotonic() + manner.grace_s
    while any(rank.child.poll() is None for rank in ranks) and len(caught) == seen:
        if end is not None and time.monotonic() > end:
            break
        time.sleep(LOOK_EVERY_S)
    if any(rank.child.poll() is None for rank in ranks):
        for rank in ranks:
            send(rank.child, signal.SIGKILL)


def _wait(ranks: Sequence[_Rank], limit_s: float | None) -> None:
    end = None if limit_s is None else time.monotonic() + limit_s
    while any(rank.child.poll() is None for rank in ranks) and (end is None or time.monotonic() < end):
        time.sleep(LOOK_EVERY_S)


@contextmanager
def _signals(ranks: Sequence[_Rank], manner: Manner) -> Iterator[list[int]]:
    """Collects the signals that ask us to stop, in place of their usual effect, and relays those that do not."""
    caught: list[int] = []

    def relay(received: int, frame: FrameType | None) -> None:
        for rank in ranks:
            manner.ask(rank.child, signal.Signals(received))

    before = {
        number: signal.signal(number, lambda received, frame: caught.append(received)) for number in manner.stop_on
    }
    before |= {number: signal.signal(number, relay) for number in manner.relay}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """True where our terminal, if we have one, sends its Ctrl-C to our process group."""
    for stream in (0, 1, 2):
        try:
            return os.tcgetpgrp(stream) == os.getpgrp()
        except OSError:
            continue
    return False

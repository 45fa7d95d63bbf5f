"""The one place that starts other programs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO


class ProgramMissing(Exception):
    """A program that is needed is not there, or cannot be executed."""


class ProgramTimeout(Exception):
    """A program that answers at once elsewhere did not answer in time."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a program that has ended printed, and its exit code (negative: the signal that ended it)."""

    code: int
    stdout: str
    stderr: str


def run(argv: Sequence[str], *, folder: str | None = None, timeout_s: float = 60.0) -> Output:
    """Runs a program to its end and returns what it printed. Raises ProgramMissing and ProgramTimeout."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise ProgramMissing(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise ProgramTimeout(f"{argv[0]}: no answer in {timeout_s:g} s") from error
    return Output(done.returncode, done.stdout, done.stderr)


def start(
    argv: Sequence[str],
    *,
    folder: str,
    environ: Mapping[str, str],
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    apart: bool = False,
    own_group: bool = False,
    keep: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts a program that goes on beside us.

    It shares our terminal, but for ``stdout`` and ``stderr`` where they are given; ``apart`` sends its errors to
    ``stdout`` too and gives it nothing to read. With ``own_group`` the terminal's Ctrl-C does not reach it, and
    ``send`` reaches its children. ``keep`` are open files that it holds open as well. Raises ProgramMissing.
    """
    try:
        return subprocess.Popen(
            list(argv),
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL if apart else None,
            stdout=stdout,
            stderr=subprocess.STDOUT if apart else stderr,
            start_new_session=own_group,
            pass_fds=keep,
        )
    except OSError as error:
        raise ProgramMissing(f"{argv[0]}: {error.strerror}") from error


def send(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to a child that lives, and to its own children where it leads a group."""
    if child.poll() is not None:
        return
    try:
        if os.getpgid(child.pid) == child.pid:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
    except ProcessLookupError:
        pass

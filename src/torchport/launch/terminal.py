"""The terminal of a program that runs in the foreground: it stays the program's, and what it prints is kept too."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# How long output is still waited for once the program has ended.
LAST_WORDS_S = 1.0
_STDOUT, _STDERR = 1, 2


@contextmanager
def copied(log: Path) -> Iterator[tuple[int, int]]:
    """File descriptors for a program's standard output and errors: what is written there goes where ours go, and
    into the log.

    Where ours are a terminal, the program's are one too, so that it prints as it would alone. Its standard input is
    not touched.
    """
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    together = _same(_STDOUT, _STDERR)
    first = _channel(_STDOUT)
    second = first if together else _channel(_STDERR)
    channels = {_STDOUT: first, **({} if together else {_STDERR: second})}
    threads = [
        threading.Thread(target=_copy, args=(source, (target, file)), daemon=True)
        for target, (source, _) in channels.items()
    ]
    for thread in threads:
        thread.start()
    with _resized([end for target, (_, end) in channels.items() if os.isatty(target)]):
        try:
            yield first[1], second[1]
        finally:
            for _, end in channels.values():
                os.close(end)
            for thread in threads:
                thread.join(LAST_WORDS_S)


def _same(one: int, other: int) -> bool:
    """Whether both are the same terminal, pipe or file: then the order of what is printed counts."""
    here, there = os.fstat(one), os.fstat(other)
    return (here.st_dev, here.st_ino, here.st_rdev) == (there.st_dev, there.st_ino, there.st_rdev)


def _channel(target: int) -> tuple[int, int]:
    """(the end we read, the end the program writes): a terminal where the target is one, else a pipe."""
    if not os.isatty(target):
        return os.pipe()
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST  # the real terminal sees to the ends of lines
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    _copy_size(target, theirs)
    return ours, theirs


def _copy_size(source: int, target: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8))


def _copy(source: int, targets: tuple[int, int]) -> None:
    """Copies until the program has closed its end. Where nobody reads ours any more the program is to notice."""
    shown, log = targets
    with os.fdopen(source, "rb", buffering=0) as stream:
        while True:
            try:
                data = stream.read(65536)
            except OSError:  # a terminal says so when its last writer has gone
                return
            if not data:
                return
            with suppress(OSError):  # a full disk ends the log and not the run
                _write(log, data)
            try:
                _write(shown, data)
            except OSError:
                return


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


@contextmanager
def _resized(terminals: list[int]) -> Iterator[None]:
    """Gives the program's terminal the size of ours whenever that changes."""
    if not terminals:
        yield
        return

    def resize(*_: object) -> None:
        for terminal in terminals:
            _copy_size(_STDOUT if os.isatty(_STDOUT) else _STDERR, terminal)

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)

"""Apply: puts changed files into the project, all or none, whatever ends the process on the way.

What was there is kept first, then a marker names it, and it goes when all files are in place. Who finds the marker
later, and nobody who holds it, knows of a process that was killed in between, and puts back what was there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchport.launch.run_folder import home_folder

MARKER = ".torchport/applying.json"
_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class Busy(Exception):
    """Another process is changing the files of the project now."""


class Edited(Exception):
    """A file that is to be changed is not what it was when the migration began; ``path`` names it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of files that a killed process had begun to change.

    ``restored`` are as they were before; ``edited`` are neither that nor ours, and stay. ``backup`` has all of them.
    """

    restored: tuple[str, ...]
    edited: tuple[str, ...]
    backup: Path


def apply(project: Path, before: Mapping[str, bytes], after: Mapping[str, bytes], stamp: str) -> Path:
    """Puts ``after`` in the place of ``before`` and returns the folder that keeps what was there.

    A signal that asks to stop waits until the files are as they were, or all in place. Raises Edited, Busy and OSError,
    and then the files are as they were; where not even that can be written, the marker stays for ``recover``.
    """
    with _signals_wait():
        for path in after:
            if (project / path).read_bytes() != before[path]:
                raise Edited(path)
        kept = _keep(project, {path: before[path] for path in after}, stamp)
        marker = _mark(project, kept, after)
        try:
            _replace(project, after)
            _unmark(project)
        except BaseException:
            _put_back(project, kept, {path: _digest(data) for path, data in after.items()})
            _unmark(project)
            raise
        finally:
            os.close(marker)
    return kept


def recover(project: Path) -> Recovered | None:
    """Puts back what a killed process left half done; None where there is nothing. Raises Busy and OSError."""
    marker = project / MARKER
    try:
        handle = os.open(marker, os.O_RDONLY)
    except OSError:  # there is none, or it is not for us to read
        return None
    with _signals_wait(), open(handle, "rb") as file:
        _lock(handle)
        if not os.fstat(handle).st_nlink:  # who held it has come to an end in the meantime
            return None
        told = _told(project, file.read())
        if told is None:
            return None
        kept, digests = told
        restored, edited = _put_back(project, kept, digests)
        _unmark(project)
    return Recovered(restored, edited, kept)


def _replace(project: Path, after: Mapping[str, bytes]) -> None:
    """Writes all beside the files before the first is renamed: where the disk is full, nothing has changed."""
    folders = sorted({(project / path).parent for path in after})
    for path, data in after.items():
        _write_aside(project / path, data)
    _sync(folders)
    for path in after:
        os.replace(_aside(project / path), project / path)
        if signal.sigpending() & _SIGNALS:
            raise KeyboardInterrupt
    _sync(folders)


def _keep(project: Path, files: Mapping[str, bytes], stamp: str) -> Path:
    """Writes what is there into a folder of its own, down to the disk."""
    backup = home_folder(project) / "backup"
    backup.mkdir(exist_ok=True)
    kept, number = backup / stamp, 2
    while kept.exists():
        kept, number = backup / f"{stamp}-{number}", number + 1
    for path, data in files.items():
        (kept / path).parent.mkdir(parents=True, exist_ok=True)
        _write(kept / path, data)
        shutil.copymode(project / path, kept / path)
    _sync([*(folder for folder in kept.rglob("*") if folder.is_dir()), kept, backup])
    return kept


def _mark(project: Path, kept: Path, after: Mapping[str, bytes]) -> int:
    """The marker, open and locked: as long as it is, nobody takes it for one that was left behind."""
    marker = project / MARKER
    if marker.exists():
        raise Busy(str(marker))
    told = {"backup": kept.name, "files": {path: _digest(data) for path, data in after.items()}}
    fresh = marker.with_name(f"applying-{os.getpid()}.json")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        _lock(handle)
        os.write(handle, json.dumps(told, indent=1).encode())
        os.fsync(handle)
        _name(fresh, marker)
    except BaseException:
        os.close(handle)
        raise
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    _sync([marker.parent])
    return handle


def _name(fresh: Path, marker: Path) -> None:
    """The marker appears whole, and only where there is none."""
    try:
        os.link(fresh, marker)
    except FileExistsError:
        raise Busy(str(marker)) from None
    except OSError:  # a file system without hard links
        os.replace(fresh, marker)


def _unmark(project: Path) -> None:
    (project / MARKER).unlink(missing_ok=True)
    _sync([(project / MARKER).parent])


def _lock(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy(MARKER) from None
    except OSError:  # a file system without locks
        pass


def _told(project: Path, data: bytes) -> tuple[Path, dict[str, str]] | None:
    """What a marker says; None where it is not one of ours, as it may come with the project."""
    try:
        told = json.loads(data)
        name, files = told["backup"], dict(told["files"])
        paths = [PurePosixPath(path) for path in (name, *files)]
    except (ValueError, LookupError, TypeError):
        return None
    kept = project / ".torchport" / "backup" / str(name)
    root = project.resolve()
    inside = all(not path.is_absolute() and ".." not in path.parts for path in paths)
    if not inside or not all((project / path).resolve().is_relative_to(root) for path in files):
        return None
    return kept, files


def _put_back(project: Path, kept: Path, digests: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Restores the files that are ours by now; (those, those that somebody else has changed since)."""
    restored, edited = [], []
    for path, digest in digests.items():
        place, was = project / path, _read(kept / path)
        with contextlib.suppress(FileNotFoundError):
            _aside(place).unlink()
        now = _read(place)
        if was is not None and now is not None and _digest(now) == digest:
            _write_aside(place, was)
            os.replace(_aside(place), place)
            restored.append(path)
        elif now != was:
            edited.append(path)
    _sync(sorted({(project / path).parent for path in digests}))
    return tuple(restored), tuple(edited)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.torchport")


def _write_aside(path: Path, data: bytes) -> None:
    """The new content beside a file, with its mode and owner."""
    fresh, was = _aside(path), path.stat()
    _write(fresh, data)
    os.chmod(fresh, was.st_mode & 0o7777)
    if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(fresh, was.st_uid, was.st_gid)


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folders: Sequence[Path]) -> None:
    """Brings what was made and renamed in folders to the disk."""
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # some file systems do not know how
                os.fsync(handle)
        finally:
            os.close(handle)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that ask us to stop arrive at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

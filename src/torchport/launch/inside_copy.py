"""The private folder: the parts of torchport that enter the user's process, and nothing else of ours."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_KEPT_S = 30 * 24 * 3600.0
PARTS = ("__init__.py", "record.py", "inside", "hardware")


def private_folder(environ: Mapping[str, str], fallback: Path) -> Path:
    """A folder with ``start.py`` and the package ``torchport`` cut down to what runs inside.

    It lies in the user's cache, keyed by content, so that Python compiles it once; where the cache cannot be
    written, in ``fallback``.
    """
    files = dict(_files())
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    # The warnings module skips frames of files so named: a warning with a stacklevel points at the user's line.
    name = f"importlib_bootstrap-{digest.hexdigest()[:16]}"
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or fallback, ".cache"))
    for parent in (cache / "torchport" / "inside", fallback):
        try:
            return _write(parent, name, files)
        except OSError as error:
            failure = error
    raise failure


def _files() -> Iterator[tuple[str, bytes]]:
    """(path in the private folder, content), in a fixed order."""
    for part in PARTS:
        root = PACKAGE / part
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"torchport/{path.relative_to(PACKAGE).as_posix()}", path.read_bytes()
    yield "start.py", (PACKAGE / "inside" / "start.py").read_bytes()


def _write(parent: Path, name: str, files: Mapping[str, bytes]) -> Path:
    folder = parent / name
    if folder.is_dir():
        os.utime(folder)  # in use: not to be removed by a newer version
        return folder
    parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed, so that two rehearsals that start together never see half a folder.
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    try:
        for path, data in files.items():
            target = fresh / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        os.chmod(fresh, 0o755)
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not folder.is_dir():
            raise
    _remove_old(parent)
    return folder


def _remove_old(parent: Path) -> None:
    """Removes what no rehearsal has used for a month: other versions, and folders that were never finished."""
    for other in [*parent.glob("importlib_bootstrap-*"), *parent.glob(".new-*")]:
        try:
            if time.time() - other.stat().st_mtime > _KEPT_S:
                shutil.rmtree(other, ignore_errors=True)
        except OSError:
            continue

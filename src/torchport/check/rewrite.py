"""Writes a file by rename, with its mode, so that nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


def rewrite(path: Path, data: bytes) -> None:
    """Puts other bytes into a file; one behind a link stays where it is. Raises OSError, and then all is as it was."""
    target = os.path.realpath(path)
    handle, fresh = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
    try:
        with open(handle, "wb") as file:
            file.write(data)
        if os.path.exists(target):
            shutil.copymode(target, fresh)
        else:
            os.chmod(fresh, 0o644)
        os.replace(fresh, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise

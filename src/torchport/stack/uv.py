"""uv, which resolves and downloads: found, asked, and its failures told apart."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Sequence

from torchport.process import Output, ProgramMissing, ProgramTimeout, run
from torchport.text import _

_TIMEOUT_S = 900.0


class UvMissing(Exception):
    """There is no uv, or it does not run."""


class NoSolution(Exception):
    """The requirements contradict each other; the text is uv's own."""


class LockFailed(Exception):
    """uv could not do it for another reason: no network, a package that cannot be read."""


def command() -> tuple[str, ...]:
    """How to start uv: the one beside this Python, else the first on PATH. Raises UvMissing."""
    if importlib.util.find_spec("uv") is not None:
        return (sys.executable, "-m", "uv")
    found = shutil.which("uv")
    if found is None:
        raise UvMissing(
            _(
                "uv is not installed, which resolves and locks packages. Install it with: {python} -m pip install uv"
            ).format(python=sys.executable)
        )
    return (found,)


def ask(uv: Sequence[str], words: Sequence[str], folder: str) -> Output:
    """Runs uv to its end. Raises UvMissing, NoSolution and LockFailed."""
    try:
        done = run([*uv, *words], folder=folder, timeout_s=_TIMEOUT_S)
    except ProgramMissing as error:
        raise UvMissing(str(error)) from error
    except ProgramTimeout as error:
        raise LockFailed(str(error)) from error
    if done.code == 0:
        return done
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stderr).strip()
    if "No module named uv" in said:
        raise UvMissing(said)
    if "No solution found" in said:
        raise NoSolution(said.split("╰─▶", 1)[-1].strip())
    raise LockFailed(_condensed(said))


def _condensed(said: str) -> str:
    """What failed, and the last of its causes."""
    lines = [line.strip().removeprefix("error: ") for line in said.splitlines() if line.strip()]
    if len(lines) > 3 and all(line.startswith("cause:") for line in lines[1:]):
        lines = [lines[1].removeprefix("cause: "), lines[-1].removeprefix("cause: ")]
    return "\n".join(lines)

"""Which torch a project's requirements let in all together, where the chosen one contradicts another package."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from torchport.mirrors import Mirrors
from torchport.plan import Stack
from torchport.resolved import Asked
from torchport.stack.uv import NoSolution, ask
from torchport.text import _


def free_torch(
    stack: Stack, asked: Sequence[Asked], *, uv: Sequence[str], mirrors: Mirrors, offline: Path | None
) -> str:
    """The torch that uv chooses where it may. Raises NoSolution, whose text names the packages that disagree."""
    words = ["--python-version", stack.python, "--no-python-downloads", "--quiet", "--no-config", "--no-header"]
    words += ["--python-platform", f"{stack.platform.rpartition('-')[2]}-manylinux_2_28", "--no-annotate"]
    if mirrors.pypi is not None:
        words += ["--default-index", mirrors.pypi]
    if offline is not None:
        words += ["--offline", "--no-index", "--find-links", str(offline)]
    lines = "".join(f"{each.text}\n" for each in asked)
    with tempfile.TemporaryDirectory(prefix="torchport-") as place:
        Path(place, "requirements.in").write_text(f"torch\n{lines}", encoding="utf-8")
        done = ask(uv, ["pip", "compile", "requirements.in", *words], place)
    for line in done.stdout.splitlines():
        if line.startswith("torch=="):
            return line.split(";")[0].removeprefix("torch==").split("+")[0].strip()
    raise NoSolution(_("no torch is among what the requirements lead to"))

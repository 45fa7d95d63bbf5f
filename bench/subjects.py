"""What mutants are made of: our own projects, and public ones at pinned commits with fake data."""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from public import Bench
from public_projects import PROJECTS

ROOT = Path(__file__).resolve().parents[1]
PROJECTS_OF_OURS = ROOT / "tests" / "projects"
# Public projects that put their tensors on one GPU and run in seconds.
PUBLIC = (
    "examples/mnist",
    "examples/mnist_rnn",
    "examples/mnist_forward_forward",
    "examples/vae",
    "examples/siamese_network",
    "examples/word_language_model LSTM",
    "examples/dcgan",
    "examples/super_resolution",
    "examples/gat",
    "examples/gcn",
    "makemore",
    "nanoGPT",
    "attention-is-all-you-need",
    "pyGAT sparse",
    "pygcn",
    "TCN copy_memory",
    "pytorch-tutorial language_model",
    "pytorch-tutorial GAN",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """One project. ``project`` is copied, the program starts in ``folder`` of the copy; ``lines`` are those that it
    comes to, None for all.
    """

    name: str
    project: Path
    entry: str
    folder: str = "."
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    lines: frozenset[tuple[str, int]] | None = None
    python: str = sys.executable

    def takes(self, path: str, first: int, last: int) -> bool:
        """Whether the program comes to any of these lines of a file."""
        return self.lines is None or any((path, line) in self.lines for line in range(first, last + 1))


def ours(folders: Sequence[Path] = ()) -> Iterator[Subject]:
    """The projects of a folder that are right: NAME/right with NAME/project.toml."""
    for root in folders or (PROJECTS_OF_OURS,):
        for right in sorted(root.glob("*/right")):
            said = tomllib.loads((right.parent / "project.toml").read_text(encoding="utf-8"))
            entry = " ".join(map(shlex.quote, said["entry"]))
            gpus = said.get("gpus", 1)
            yield Subject(right.parent.name, right, entry, options=("--gpus", str(gpus)) if gpus > 1 else ())


def public(checkouts: Path, python: str) -> Iterator[Subject]:
    """Public projects from their clones, with fake data, in a scratch folder that is gone at the end."""
    scratch = Path(tempfile.mkdtemp(prefix="torchport-mutants-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    bench = Bench(python, {path.name: path for path in checkouts.iterdir() if path.is_dir()}, scratch, 300)
    for project in PROJECTS:
        if project.name in PUBLIC and project.source[0].replace("/", "+") in bench.checkouts:
            try:
                folder, environ = bench.prepare(project, "mutants")
            except (OSError, SystemExit) as error:
                print(f"{project.name} is left out: {error}", file=sys.stderr)
                continue
            changed = {name: value for name, value in environ.items() if name in _PASSED_ON}
            options = ("--steps", str(project.steps))
            lines = _lines(folder, project.command, options, environ, python, scratch / "lines")
            yield Subject(project.name, folder, project.command, ".", options, changed, lines, python)


def _lines(
    folder: Path, command: str, options: tuple[str, ...], environ: dict[str, str], python: str, file: Path
) -> frozenset[tuple[str, int]]:
    """The lines below a folder that a rehearsal of the program comes to."""
    file.unlink(missing_ok=True)
    words = ("--python", python, *options, *shlex.split(command))
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        shutil.copytree(folder, copy, symlinks=True)
        subprocess.run(
            [sys.executable, "-m", "torchport", "rehearse", *words],
            cwd=copy,
            env={**environ, "LINES_TO": str(file)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=900,
        )
    pairs = (line.rsplit(":", 1) for line in file.read_text(encoding="utf-8").splitlines())
    return frozenset((path, int(number)) for path, number in pairs)


_PASSED_ON = ("PYTHONPATH", "FAKE_IMAGES", "GPUS", "HOME", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONHASHSEED")

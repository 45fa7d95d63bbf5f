"""What mutants are made of: our own projects, and public ones at pinned commits with fake data."""

from __future__ import annotations

import ast
import atexit
import shlex
import shutil
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
    """One project. ``project`` is copied, the program starts in ``folder`` of the copy; ``files`` are those that it
    runs, empty for all.
    """

    name: str
    project: Path
    entry: str
    folder: str = "."
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    python: str = sys.executable

    def takes(self, path: str) -> bool:
        return not self.files or path in self.files


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
            runs = _runs(folder, project.command)
            yield Subject(project.name, folder, project.command, ".", options, changed, runs, python)


def _runs(folder: Path, command: str) -> tuple[str, ...]:
    """The script of a command and the files beside it that it imports, in turn."""
    waiting, found = [folder / shlex.split(command)[0]], []
    while waiting:
        path = waiting.pop()
        name = path.relative_to(folder).as_posix()
        if name in found or not path.is_file():
            continue
        found.append(name)
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                names = [module, *(f"{module}.{each.name}".lstrip(".") for each in node.names)]
            for base in {path.parent, folder}:
                waiting += [base / f"{name.replace('.', '/')}.py" for name in names if name]
                waiting += [base / name.replace(".", "/") / "__init__.py" for name in names if name]
    return tuple(found)


_PASSED_ON = ("PYTHONPATH", "FAKE_IMAGES", "GPUS", "HOME", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONHASHSEED")

"""The user's command line: a script, a module or a notebook, alone or behind ``python`` or ``torchrun``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NoReturn

from torchport.project import module_file, nearest_files
from torchport.text import _

OTHER_LAUNCHERS = frozenset(
    {"accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "horovodrun", "lightning", "fabric"}
)

# torchrun's options that take no value, and those that do.
FLAGS = ("standalone", "no-python", "run-path")
VALUES = (
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "max-restarts",
    "monitor-interval",
    "start-method",
    "event-log-handler",
    "role",
    "shutdown-timeout",
    "log-dir",
    "redirects",
    "tee",
    "local-ranks-filter",
    "node-rank",
    "master-addr",
    "local-addr",
    "logs-specs",
    "numa-binding",
    "signals-to-handle",
    "virtual-local-rank",
    "duplicate-stdout-filters",
    "duplicate-stderr-filters",
)


class ProgramError(Exception):
    """A command line that does not name something to run."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. ``argv`` begins with the path of a script or notebook, or with the name of a module.

    ``processes`` is None unless the command line says how many ranks it starts; 0 stands for one a GPU.
    ``local_rank_option`` is true where each rank also gets ``--local-rank=K``, as torch.distributed.launch
    gives it.
    """

    kind: str
    argv: tuple[str, ...]
    python: str | None = None
    processes: int | None = None
    master_port: int | None = None
    local_rank_option: bool = False

    @property
    def name(self) -> str:
        """A short name for messages and folders."""
        return PurePath(self.argv[0]).stem if self.kind != "module" else self.argv[0].removesuffix(".__main__")


def parse(words: Sequence[str], folder: Path) -> Program:
    """Reads the words after torchport's own options.

    Raises ProgramError, which says what is wrong with them and, for a file that is not there, the nearest
    names.
    """
    if not words:
        raise ProgramError(_("nothing to run: give a script, -m MODULE or a notebook"))
    first = PurePath(words[0]).name
    if words[0] == "-m":
        return _module(words)
    if (folder / words[0]).exists():
        return _script(words, folder)
    if first == "torchrun":
        return _torchrun(words[1:], folder)
    if re.fullmatch(r"python[0-9.]*", first):
        return _python(words, folder)
    if first in OTHER_LAUNCHERS:
        raise ProgramError(
            _("{launcher} is not followed: give the script itself, with --gpus N, or torchrun").format(launcher=first)
        )
    return _script(words, folder)


def entry_of(program: Program, folder: Path) -> Path | None:
    """The file that runs, None for a module that lies elsewhere."""
    if program.kind == "module":
        return module_file(program.argv[0], folder)
    path = folder / program.argv[0]
    return (path / "__main__.py" if path.is_dir() else path).resolve()


def _script(words: Sequence[str], folder: Path) -> Program:
    path = folder / words[0]
    if path.is_dir() and (path / "__main__.py").is_file():
        return Program("script", tuple(words))
    if path.is_dir():
        raise ProgramError(_("{path} is a folder without a __main__.py: name the script in it").format(path=words[0]))
    if not path.exists():
        near = nearest_files(path, folder)
        hint = _("Did you mean {names}?").format(names=", ".join(_relative(near, folder))) if near else ""
        raise ProgramError(_("{path}: there is no such file.").format(path=words[0]) + (f" {hint}" if hint else ""))
    kind = "notebook" if path.suffix == ".ipynb" else "script"
    return Program(kind, tuple(words))


def _relative(names: Sequence[str], folder: Path) -> list[str]:
    return [str(Path(name).relative_to(folder)) if Path(name).is_relative_to(folder) else name for name in names]


def _module(words: Sequence[str]) -> Program:
    if len(words) < 2:
        raise ProgramError(_("-m needs the name of a module"))
    return Program("module", tuple(words[1:]))


def _python(words: Sequence[str], folder: Path) -> Program:
    """``python train.py …`` and ``python -m …``; an interpreter that is more than the word python is used."""
    named = None if words[0] in ("python", "python3") else words[0]
    rest = list(words[1:])
    while rest and rest[0] in ("-u", "-B"):
        rest.pop(0)
    if rest[:2] == ["-m", "torch.distributed.run"]:
        return replace(_torchrun(rest[2:], folder), python=named)
    if rest[:2] == ["-m", "torch.distributed.launch"]:
        by_environment = any(word in ("--use-env", "--use_env") for word in rest)
        program = _torchrun([word for word in rest[2:] if word not in ("--use-env", "--use_env")], folder)
        return replace(program, python=named, local_rank_option=not by_environment)
    if not rest or (rest[0].startswith("-") and rest[0] != "-m"):
        raise ProgramError(_("{words}: give python a script or -m MODULE").format(words=" ".join(words)))
    program = _module(rest) if rest[0] == "-m" else _script(rest, folder)
    return replace(program, python=named)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ProgramError(f"torchrun: {message}")


def _torchrun(words: Sequence[str], folder: Path) -> Program:
    """The part of torchrun's command line that matters on one machine; the rest is read and set aside."""
    parser = _Parser("torchrun", add_help=False, allow_abbrev=False)

    def add(name: str, **rest: object) -> None:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", **rest)  # type: ignore[arg-type]

    add("nproc-per-node", default="1")
    add("nnodes", default="1")
    add("master-port", type=int, default=None)
    parser.add_argument("-m", "--module", action="store_true")
    for name in FLAGS:
        add(name, action="store_true")
    for name in VALUES:
        add(name)
    parser.add_argument("-r", "-t", dest="short")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args(list(words))
    if options.nnodes.split(":")[-1] != "1":
        raise ProgramError(
            _("torchrun --nnodes {value}: a rehearsal is one machine; use --nnodes 1").format(value=options.nnodes)
        )
    if options.no_python:
        raise ProgramError(_("torchrun --no-python: a rehearsal runs Python programs only"))
    if not options.program:
        raise ProgramError(_("torchrun: names no script"))
    program = _module(["-m", *options.program]) if options.module else _script(options.program, folder)
    return replace(program, processes=_count(options.nproc_per_node), master_port=options.master_port)


def _count(text: str) -> int:
    if text in ("gpu", "auto"):
        return 0
    if not text.isdigit() or int(text) < 1:
        raise ProgramError(_("torchrun --nproc-per-node {value}: give a number, gpu or auto").format(value=text))
    return int(text)

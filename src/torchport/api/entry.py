"""The program that is to be migrated: which file of which project, and how it is run in a copy of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchport import config
from torchport.check.files import SKIPPED
from torchport.launch import interpreter
from torchport.launch.program import Program, ProgramError, parse
from torchport.plan import Run
from torchport.project import find_project, module_file
from torchport.record import Site
from torchport.text import _


@dataclass(frozen=True, slots=True)
class Entry:
    """``words`` run it from ``folder``, both relative to the ``project``, as is ``path``, the file that runs.

    ``python`` is the interpreter that its words name.
    """

    words: tuple[str, ...]
    project: Path
    folder: Path
    path: str
    python: str | None


def find_entry(path: str, entry: str, folder: Path) -> Entry:
    """Raises ProgramError for what the user wrote."""
    place = (folder / path).resolve()
    if not place.is_dir():
        raise ProgramError(_("{path}: there is no such folder").format(path=path))
    try:
        words = shlex.split(entry)
    except ValueError as error:
        raise ProgramError(_("--entry {entry}: {error}").format(entry=entry, error=error)) from None
    if not words:
        raise ProgramError(_('--entry is missing: the program to migrate, as in --entry "train.py --epochs 1"'))
    program = parse(words, place)
    file = _file(program, place)
    project = find_project(file, place, Path.home()).root.resolve()
    own = find_project(place, place, Path.home()).root.resolve()
    if not (file.is_relative_to(place) or project == own) or not place.is_relative_to(project):
        raise ProgramError(
            _("{entry} belongs to the project in {project}, not to {path}: torchport migrate {project} …").format(
                entry=program.argv[0], project=project, path=place
            )
        )
    inside = file.relative_to(project)
    if SKIPPED & set(inside.parts):
        raise ProgramError(
            _("{entry} is not one of the project's own files: give the script or module that it starts").format(
                entry=program.argv[0]
            )
        )
    if program.kind != "module":  # an absolute path would run the file itself and not its copy
        at = len(words) - len(program.argv)
        named = place / words[at]
        words[at] = os.path.relpath(named.parent.resolve() / named.name, place)
    return Entry(tuple(words), project, place.relative_to(project), inside.as_posix(), program.python)


def _file(program: Program, place: Path) -> Path:
    """The file that runs, behind links."""
    name = program.argv[0]
    if program.kind != "module":
        path = place / name
        path = path / "__main__.py" if path.is_dir() else path
    else:
        found = module_file(name, place) or module_file(name, place / "src")
        if found is None:
            raise ProgramError(_("-m {module}: there is no such module in {path}").format(module=name, path=place))
        path = found
    path = path.resolve()
    try:
        path.read_bytes()[:0]
    except OSError as error:
        raise ProgramError(_("{path}: {error}").format(path=name, error=error.strerror)) from None
    return path


def python_of(entry: Entry, named: str | None, folder: Path, environ: Mapping[str, str]) -> str:
    """The interpreter of the project, which the copy does not have. Raises ConfigError and InterpreterError."""
    place, settings = entry.project / entry.folder, config.load(entry.project)
    asked, where = (named, folder) if named else (entry.python, place)
    explicit = interpreter.named(asked, where, settings.python, entry.project)
    if explicit is not None and os.sep in explicit:
        explicit = os.path.abspath(explicit)
    return interpreter.choose(explicit, entry.project, place, environ, sys.executable).python


def of_copy(environ: Mapping[str, str], entry: Entry, root: Path, also: Sequence[Path] = ()) -> dict[str, str]:
    """The environment in which the copy in ``root`` runs: where a path of modules leads into the project it leads into
    the copy. ``also`` are folders of the project to find modules in first.
    """
    given = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    moved = [_moved(part, entry.project, root) for part in (*map(str, also), *given)]
    return {"PYTHONHASHSEED": "0", **environ, **({"PYTHONPATH": os.pathsep.join(moved)} if moved else {})}


def _moved(path: str, project: Path, root: Path) -> str:
    real = Path(path).resolve()
    return str(root / real.relative_to(project)) if os.path.isabs(path) and real.is_relative_to(project) else path


def imported_from(run: Run, project: Path) -> list[Path]:
    """The folders of the project itself from which a run of the copy has imported modules: it is installed in place."""
    sites = {
        each
        for record in run.records
        for each in (
            *(loss.site for loss in record.losses),
            *(draw[0] for draw in record.draws),
            *(place for seen in record.findings for place in _sites([seen.site, seen.fields])),
        )
        if each is not None and Path(each.path).is_relative_to(project)
    }
    return sorted({_top(Path(each.path).parent) for each in sites})


def _sites(value: object) -> list[Site]:
    if isinstance(value, Site):
        return [value]
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [site for item in items for site in _sites(item)]


def _top(folder: Path) -> Path:
    """Where a package begins: the folder in which Python looks for it."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder

"""Project: the user's folder, found from the program that is to run, and what its source says."""

from __future__ import annotations

import ast
import difflib
import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml", ".git")
LAUNCHER_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
RUNNABLE = (".py", ".ipynb")

# A notebook may hold pictures; a source that is longer than this was not written by hand.
MOST_BYTES = 50_000_000
MOST_CHARACTERS = 500_000


@dataclass(frozen=True, slots=True)
class Project:
    """The folder whose files are the user's."""

    root: Path


def find_project(start: Path, folder: Path, home: Path) -> Project:
    """The project that the file or folder ``start`` belongs to, seen from the working directory ``folder``.

    That is the nearest folder above it that looks like a project, else the working directory where it
    contains ``start``, else the file's own folder. A home folder or the root of the file system is no
    project.
    """
    place = start if start.is_dir() else start.parent
    for candidate in (place, *place.parents):
        if candidate == home or candidate == candidate.parent:
            break
        if any((candidate / marker).exists() for marker in MARKERS):
            return Project(candidate)
    inside = folder == place or folder in place.parents
    return Project(folder if inside and folder not in (home, Path(folder.anchor)) else place)


def nearest_files(missing: Path, project: Path, count: int = 3) -> tuple[str, ...]:
    """Runnable files whose names come nearest to that of a file that is not there, nearest first."""
    paths = [path for folder in dict.fromkeys((missing.parent, project)) for path in _runnable(folder)]
    close = difflib.get_close_matches(missing.stem, {path.stem for path in paths}, count, 0.5)
    return tuple(dict.fromkeys(str(path) for stem in close for path in paths if path.stem == stem))[:count]


def _runnable(folder: Path, depth: int = 2) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix in RUNNABLE and entry.is_file():
            yield entry
        elif depth and entry.is_dir() and not entry.name.startswith((".", "__")):
            yield from _runnable(entry, depth - 1)


def source_reader(root: Path) -> Callable[[str], str | None]:
    """Gives the source of a place by the path that a record has for it, None where there is nothing to show.

    Reads regular files below ``root`` and nothing else: a record may come from anywhere. A place in a
    notebook, ``demo.ipynb cell [3]``, gives the source of that cell.
    """
    root = root.resolve()

    def read(path: str) -> str | None:
        cell = _CELL.fullmatch(path)
        try:
            file = (root / (cell["path"] if cell else path)).resolve()
            if not file.is_relative_to(root) or not file.is_file() or file.stat().st_size > MOST_BYTES:
                return None
            text = file.read_text("utf-8", errors="replace")
            source = _cell_source(text, int(cell["number"])) if cell else text
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return source if len(source) <= MOST_CHARACTERS else None

    return read


_CELL = re.compile(r"(?P<path>.+\.ipynb) cell \[(?P<number>[1-9]\d*)\]", re.DOTALL)


def _cell_source(notebook: str, number: int) -> str:
    """The code cell of that number, counted as a rehearsal does: those that are run and not empty."""
    content = json.loads(notebook)
    cells = [cell for sheet in content.get("worksheets") or [content] for cell in sheet["cells"]]
    sources = [
        "".join(cell.get("source", cell.get("input", "")))
        for cell in cells
        if cell["cell_type"] == "code" and "skip-execution" not in cell.get("metadata", {}).get("tags", ())
    ]
    return [source for source in sources if source.strip()][number - 1]


def expects_launcher(entry: Path, root: Path) -> bool:
    """True where the program expects the variables that torchrun sets, and does not start its ranks itself.

    Looks at the entry file and, through its imports, at the project's own files; one that does not parse says
    nothing.
    """
    trees = list(_local_trees(entry, root))
    if not trees or _spawns(trees[0]):
        return False
    if any(_reads_launcher_variables(tree) for tree in trees):
        return True
    return any(map(_joins_by_environment, trees)) and not any(map(_spawns, trees))


def _local_trees(entry: Path, root: Path) -> Iterator[ast.Module]:
    waiting, seen = [entry], {entry}
    while waiting:
        path = waiting.pop()
        tree = _parse(path)
        if tree is None:
            continue
        yield tree
        for name in _imported(tree):
            for folder in (entry.parent, root, path.parent):
                base = folder.joinpath(*name.split("."))
                for found in (base.with_suffix(".py"), base / "__init__.py"):
                    if found not in seen and found.is_file():
                        seen.add(found)
                        waiting.append(found)


def _parse(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            prefix = f"{node.module}." if node.module else ""
            yield from (prefix + alias.name for alias in node.names if alias.name != "*")


def _reads_launcher_variables(tree: ast.Module) -> bool:
    """True for ``environ["RANK"]``, ``environ.get("RANK")``, ``getenv("RANK")`` and ``"RANK" in environ``."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=read, slice=ast.Constant(value=name), ctx=ast.Load()):
                found = _last_name(read) == "environ"
            case ast.Call(func=ast.Attribute(value=read, attr="get"), args=[ast.Constant(value=name), *_]):
                found = _last_name(read) == "environ"
            case ast.Call(func=function, args=[ast.Constant(value=name), *_]):
                found = _last_name(function) == "getenv"
            case ast.Compare(left=ast.Constant(value=name), comparators=[read]):
                found = _last_name(read) == "environ"
            case _:
                continue
        if found and name in LAUNCHER_VARIABLES:
            return True
    return False


def _joins_by_environment(tree: ast.Module) -> bool:
    """True for an ``init_process_group`` that is not told its rank."""
    return any(
        isinstance(node, ast.Call)
        and _last_name(node.func) == "init_process_group"
        and not any(keyword.arg in {"rank", "store"} for keyword in node.keywords)
        for node in ast.walk(tree)
    )


def _spawns(tree: ast.Module) -> bool:
    """True for ``mp.spawn(…)``, ``spawn(…)``, ``start_processes(…)``: the program starts its ranks itself."""
    return any(
        isinstance(node, ast.Call) and _last_name(node.func) in {"spawn", "start_processes", "notebook_launcher"}
        for node in ast.walk(tree)
    )


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def module_file(name: str, folder: Path) -> Path | None:
    """The file that ``python -m name`` would run from that folder, if it lies there."""
    base = folder.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__main__.py"):
        if path.is_file():
            return path
    return None

"""Plays a notebook cell by cell, as "Run All" does, with the standard library alone."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import linecache
import os
import re
import shlex
import sys
import traceback
import warnings
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from torchport.inside.magics import shows_result, to_python
from torchport.inside.uncaught import peel_all

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# A cell's "from __future__ import annotations" holds for the cells after it, too.
_FUTURE = annotations.compiler_flag


class NotebookError(Exception):
    """A file that is not a notebook of Python cells."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell; ``may_fail`` if it is tagged raises-exception. Numbers are Jupyter's after a Run All."""

    number: int
    source: str
    may_fail: bool = False


def read(path: str) -> list[Cell]:
    """The code cells of a notebook (nbformat 3 or 4) that are not empty nor tagged skip-execution.

    Raises NotebookError, with the path and what to do.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = json.load(file)
        sheets = content.get("worksheets") or [content]
        rows = [cell for sheet in sheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(row.get("source", row.get("input", ""))) for row in rows]
        tags = [set(row.get("metadata", {}).get("tags", ())) for row in rows]
        kernel = content.get("metadata", {}).get("kernelspec", {})
    except OSError as error:
        raise NotebookError(f"{path}: cannot be read: {error.strerror}; give the path of a notebook") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotebookError(f"{path}: is not a notebook ({error}); open it in Jupyter and save it") from error
    if (language := kernel.get("language", "python")) != "python":
        raise NotebookError(f"{path}: its cells are written in {language}; only Python notebooks can be run")
    kept = [(text, tag) for text, tag in zip(texts, tags, strict=True) if text.strip() and "skip-execution" not in tag]
    return [Cell(number, text, "raises-exception" in tag) for number, (text, tag) in enumerate(kept, 1)]


def play(path: str, main: ModuleType) -> None:
    """Runs the notebook in ``main``, in the notebook's own folder, as Jupyter does."""
    try:
        cells = read(path)
    except NotebookError as error:
        print(f"torchport: {error}", file=sys.stderr)
        sys.exit(2)
    folder, name = os.path.split(os.path.abspath(path))
    os.chdir(folder)
    # A figure must neither open a window nor wait for somebody to close it.
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
    if sys.version_info < (3, 13):
        # Older interpreters print source lines from files only, and cells are none.
        sys.excepthook = traceback.print_exception
    shell = Shell(vars(main))
    vars(builtins).update(get_ipython=lambda: shell, display=display)
    for cell in cells:
        shell.run_cell(cell, f"{name} cell [{cell.number}]")


def display(*values: object, **_options: object) -> None:
    """Prints what Jupyter would show, as text."""
    for value in values:
        print(repr(value))


class Shell:
    """What ``get_ipython()`` gives a notebook: it runs cells and the few magics that change what cells do."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.user_ns = namespace
        self._place = ""
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._loop: AbstractEventLoop | None = None
        self._noted: set[str] = set()
        self._previous_folder = os.getcwd()

    def run_cell(self, cell: Cell, place: str) -> None:
        """Runs one cell and shows its last value; ``place`` is its name in tracebacks."""
        self._place = place
        # Without a time of change, linecache keeps the entry although there is no such file.
        lines = f"{cell.source}\n".splitlines(keepends=True)
        linecache.cache[place] = (len(cell.source), None, lines, place)
        try:
            self._run(cell.source, place)
        except Exception as error:
            if not cell.may_fail:
                raise
            peel_all(error)
            sys.excepthook(type(error), error, error.__traceback__)

    def _run(self, source: str, place: str) -> None:
        source = to_python(source)
        tree = compile(source, place, "exec", self._flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        last: list[ast.stmt] = []
        if tree.body and isinstance(tree.body[-1], ast.Expr) and shows_result(source):
            last = [tree.body.pop()]
        self._execute(compile(tree, place, "exec", self._flags, dont_inherit=True))
        if last:
            self._execute(compile(ast.Interactive(last), place, "single", self._flags, dont_inherit=True))

    def _execute(self, code: CodeType) -> None:
        self._flags |= code.co_flags & _FUTURE
        if not code.co_flags & inspect.CO_COROUTINE:
            exec(code, self.user_ns)
            return
        import asyncio

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(eval(code, self.user_ns))

    def run_line_magic(self, name: str, line: str) -> None:
        """Honours ``%cd``, ``%env`` and ``%run``; any other magic is noted and skipped."""
        match name:
            case "cd":
                self._change_folder(self._expand(line))
            case "env" | "set_env" if line:
                variable, _, value = self._expand(line).replace("=", " ", 1).partition(" ")
                if value:
                    os.environ[variable] = value.strip()
                print(f"env: {variable}={os.environ.get(variable, '')}")
            case "run":
                self._run_file(*shlex.split(self._expand(line)))
            case _:
                self._note(f"%{name} {line}".rstrip() + " is skipped")

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Honours ``%%writefile``; any other cell magic is noted and its cell skipped."""
        if name not in ("writefile", "file"):
            return self._note(f"%%{name} {line}".rstrip() + ": this cell is not run")
        *options, path = shlex.split(self._expand(line))
        with open(path, "a" if options else "w", encoding="utf-8") as file:
            file.write(cell)

    def magic(self, line: str) -> None:
        """An older way to write a line magic."""
        name, _, rest = line.lstrip("%").partition(" ")
        self.run_line_magic(name, rest.strip())

    def system(self, command: str) -> None:
        """A rehearsal starts no other programs: the command is noted."""
        self._note(f"!{command} is not run")

    def getoutput(self, command: str) -> list[str]:
        """Notes the command; what it would have printed is taken to be nothing."""
        self._note(f"!{command} is not run, and its output is taken to be empty")
        return []

    def _note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            print(f"torchport: {self._place}: {text}", file=sys.stderr)

    def _expand(self, line: str) -> str:
        """Puts values in the place of ``{expression}`` and ``$name``, where they have one."""

        def value(match: re.Match[str]) -> str:
            try:
                return str(eval(match[1] or match[2], self.user_ns))
            except Exception:
                return match[0]

        return re.sub(r"\{([^{}]+)\}|\$(\w+)", value, line)

    def _change_folder(self, line: str) -> None:
        words = [word for word in shlex.split(line) if word != "-q"]
        target = words[0] if words else "~"
        here = os.getcwd()
        os.chdir(self._previous_folder if target == "-" else os.path.expanduser(target))
        self._previous_folder = here
        print(os.getcwd())

    def _run_file(self, path: str, *arguments: str) -> None:
        """Runs a script of its own namespace, or a notebook in this one, and keeps the names it made."""
        if path.endswith(".ipynb"):
            for cell in read(path):
                self.run_cell(cell, f"{path} cell [{cell.number}]")
            return
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        names = {"__name__": "__main__", "__file__": path}
        before, sys.argv = sys.argv, [path, *arguments]
        try:
            exec(code, names)
        finally:
            sys.argv = before
        self.user_ns.update({name: value for name, value in names.items() if not name.startswith("__")})

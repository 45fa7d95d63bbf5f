"""Runs a script, a module or a notebook as Python itself would, and says how it ended.

Python's own steps are followed one by one (CPython's ``Modules/main.c`` and ``Python/pythonrun.c``);
``python -m``, a folder and a zip file go through ``runpy``, as they do there. ``__main__`` is a module of
our own that stays in ``sys.modules``, so that pickles, atexit handlers and worker processes find it.

What cannot be the same: our frames lie under the program's on the stack, where ``inspect.stack()`` and
faulthandler show them. The ``warnings`` module does not, if "importlib" and "_bootstrap" are part of our
folder's name: it takes what lies there for the import system.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER, decode_source
from pkgutil import get_importer
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal

from torchport.inside.uncaught import mark_interrupted, peel_all, report

Kind = Literal["script", "module", "notebook"]


class StopRehearsal(SystemExit):
    """Ends the program early and cleanly: raised in it, say, after the last wanted step.

    It is a SystemExit of status 0, so that threads and worker processes end as quietly as the program.
    """


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the program ended; ``status`` is its exit status, as far as no hook or handler changes it.

    ``finished``: reached its end; ``steps``: StopRehearsal; ``exited``: SystemExit; ``interrupted``: Ctrl-C;
    ``error``: any other exception that nobody caught. The last two carry it, without frames of ours.
    """

    reason: Literal["finished", "steps", "exited", "interrupted", "error"]
    status: int
    error: BaseException | None = None


def run(
    kind: Kind,
    argv: Sequence[str],
    *,
    before: Callable[[], None] | None = None,
    on_end: Callable[[Outcome], None] | None = None,
) -> None:
    """Runs ``argv``: a script, folder, zip file, module or notebook by its name, and the arguments it gets.

    It is the last thing that the process's main file does: it returns, or raises SystemExit, just so that
    the interpreter then ends as it would have after the program itself. ``before`` is called when
    ``sys.argv``, ``sys.path`` and ``__main__`` are as the program will see them, ``on_end`` when the program
    has ended and its traceback is not shown yet. ``sys.argv[0]`` must be as the interpreter set it.
    """
    main = _new_main()
    program = _prepare(kind, list(argv), main)
    if before is not None:
        before()
    status = _conclude(_play(program, on_end), kind, main, on_end)
    if status:
        raise SystemExit(status)


def _play(program: Callable[[], None], on_end: Callable[[Outcome], None] | None) -> Outcome:
    # No variable here or in run() may hold the error: its traceback leads back to these frames, and the
    # cycle would keep the program's objects alive for longer than Python does.
    try:
        program()
    except StopRehearsal:
        return Outcome("steps", 0)
    except SystemExit as stop:
        if on_end is not None:
            on_end(Outcome("exited", _status(stop)))
        raise
    except BaseException as error:
        peel_all(error)
        interrupted = type(error) is KeyboardInterrupt  # Python does not count a subclass.
        return Outcome("interrupted", 130, error) if interrupted else Outcome("error", 1, error)
    return Outcome("finished", 0)


def _conclude(outcome: Outcome, kind: Kind, main: ModuleType, on_end: Callable[[Outcome], None] | None) -> int:
    """Tells how the program ended, shows its error and returns the status to exit with."""
    if on_end is not None:
        on_end(outcome)
    if outcome.error is not None:
        if kind != "module":
            _flush()
        report(outcome.error)
    if kind == "script":
        for name in ("__file__", "__cached__"):  # Python takes them away: atexit handlers do not see them.
            vars(main).pop(name, None)
    if outcome.reason == "interrupted":
        mark_interrupted()
        return 0
    return outcome.status


def _new_main() -> ModuleType:
    """A ``__main__`` as the interpreter makes it, in the place of the one that is running us."""
    main = ModuleType("__main__")
    main.__loader__ = BuiltinImporter
    if "__annotations__" in vars(sys.modules["__main__"]):  # Up to Python 3.13.
        main.__annotations__ = {}
    main.__builtins__ = sys.modules["builtins"]  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    return main


def _prepare(kind: Kind, argv: list[str], main: ModuleType) -> Callable[[], None]:
    """Sets ``sys.argv``, ``sys.orig_argv`` and ``sys.path``; returns what runs the program."""
    options = sys.orig_argv[: sys.orig_argv.index(sys.argv[0])]
    sys.orig_argv = [*options, *(["-m"] if kind == "module" else []), *argv]
    name, sys.argv = argv[0], argv
    safe = getattr(sys.flags, "safe_path", sys.flags.isolated)
    folder = _current_folder()
    if kind == "notebook":
        from torchport.inside.notebook import play

        sys.path.insert(0, "")
        return lambda: play(name, main)
    if kind == "module":
        sys.argv = ["-m", *argv[1:]]
        if folder and not safe:
            sys.path.insert(0, folder)
        return lambda: _run_module(name, is_option=True)
    path = os.path.join(folder, name)
    if get_importer(path) is not None:  # A folder or a zip file.
        sys.path.insert(0, path)
        return lambda: _run_module("__main__", is_option=False)
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(name)))
    return lambda: _run_script(path, main)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was deleted.
        return ""


def _run_module(name: str, is_option: bool) -> None:
    # The interpreter itself calls this function, by this name, for -m, folders and zip files.
    from runpy import _run_module_as_main  # type: ignore[attr-defined]

    _deepen(0)
    _run_module_as_main(name, alter_argv=is_option)


def _run_script(path: str, main: ModuleType) -> None:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.orig_argv[0]}: can't open file {path!r}: {reason}", file=sys.stderr)
        sys.exit(2)
    namespace = vars(main)
    namespace.update(__file__=path, __cached__=None)
    if path.endswith(".pyc") or source[:2] == MAGIC_NUMBER[:2]:
        main.__loader__ = SourcelessFileLoader("__main__", path)
        code = _load(source)
    else:
        main.__loader__ = SourceFileLoader("__main__", path)
        if not _is_text(source):
            return _run_file(path, namespace)
        code = compile(source, path, "exec", dont_inherit=True)
    del source
    _deepen(1 if sys.version_info < (3, 12) else 0)  # Up to Python 3.11 exec() is a level of its own.
    exec(code, namespace)


def _load(bytecode: bytes) -> CodeType:
    if not bytecode.startswith(MAGIC_NUMBER):
        raise RuntimeError("Bad magic number in .pyc file")
    code: CodeType = marshal.loads(bytecode[16:])
    return code


def _is_text(source: bytes) -> bool:
    try:
        return "\0" not in decode_source(source)
    except (SyntaxError, UnicodeError, LookupError):
        return False


def _run_file(path: str, namespace: dict[str, Any]) -> None:
    """Has Python's own file reader take a script whose encoding is wrong: compile() words that otherwise."""
    from ctypes import c_char_p, c_int, c_void_p, py_object, pythonapi

    pythonapi.fopen.argtypes, pythonapi.fopen.restype = (c_char_p, c_char_p), c_void_p
    call = pythonapi.PyRun_FileExFlags
    call.argtypes = (c_void_p, c_char_p, c_int, py_object, py_object, c_int, c_void_p)
    call.restype = py_object
    file_input, close_it, no_flags = 257, 1, None
    name = os.fsencode(path)
    call(pythonapi.fopen(name, b"rb"), name, file_input, namespace, namespace, close_it, no_flags)


def _deepen(levels: int) -> None:
    """Raises the recursion limit by what lies under the program, which then gets as deep as without us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        levels, frame = levels + 1, frame.f_back
    sys.setrecursionlimit(sys.getrecursionlimit() + levels)


def _status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    return stop.code & 0xFF if isinstance(stop.code, int) else 1


def _flush() -> None:
    for stream in (sys.stderr, sys.stdout):
        with contextlib.suppress(Exception):
            stream.flush()

"""Programs under plain Python and under run(): output, errors and exit code must be the same bytes."""

from __future__ import annotations

import os
import py_compile
import re
import shlex
import shutil
import signal
import subprocess
import sys
import traceback
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import torchport
from torchport.inside.notebook import Cell, Shell
from torchport.inside.uncaught import peel

PROGRAMS = Path(__file__).parent / "programs"
PACKAGE = Path(torchport.__file__).parent
ADDRESS = re.compile(r"at 0x[0-9a-f]+")

START = """\
import os, sys
folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
from torchport.inside.run import run
sys.path.remove(folder)
run(sys.argv[1], sys.argv[2:])
"""


@dataclass(frozen=True)
class Case:
    """One way to start one program, and the exit status that Python gives it.

    ``command`` is what follows ``python`` on the command line; "$W" stands for the folder of programs.
    """

    command: str
    status: int = 0
    stdin: str = ""
    cwd: str = "."
    env: str = ""
    merged: bool = False

    @property
    def name(self) -> str:
        parts = (self.cwd.strip("."), self.env, self.command, "2>&1" if self.merged else "")
        return " ".join(part for part in parts if part)


CONTEXT = [
    Case("context.py"),
    Case("./context.py"),
    Case("far/../context.py one 'two words' '' -m --three=4"),
    Case("$W/context.py"),
    Case("far/away.py"),
    Case("far/link.py"),
    Case("linked/away.py"),
    Case("latin.py"),
    Case("bom.py"),
    Case("-u context.py"),
    Case("-O -X dev -W error::UserWarning context.py"),
    Case("context.py", env="PYTHONSAFEPATH=1"),
    Case("context.py", env="PYTHONPATH=far"),
    Case("-m context a 'b c'"),
    Case("-m package.module x"),
    Case("-m package x"),
    Case("-m spaces"),
    Case("-m context", env="PYTHONSAFEPATH=1 PYTHONPATH=$W"),
    Case("app a b"),
    Case("app.zip a b"),
]

SYNTAX = [
    Case("broken.py", 1),
    Case("returns.py", 1),
    Case("gbk.py", 1),
    Case("cookie.py", 1),
    Case("empty.py"),
    Case("warned.py"),
    Case("-W error warned.py", 1),
    Case("-m package.broken", 1),
]

ERRORS = [
    Case("errors.py plain", 1),
    Case("errors.py chained", 1),
    Case("errors.py hidden", 1),
    Case("errors.py group", 1),
    Case("errors.py unprintable", 1),
    Case("errors.py recursion", 1),
    Case("errors.py imported", 1),
    Case("errors.py bad_syntax", 1),
    Case("errors.py plain", 1, merged=True),
    Case("-u errors.py chained", 1, merged=True),
    Case("-m errors plain", 1, merged=True),
    Case("compiled.pyc chained", 1),
    Case("failing.zip a", 1),
    Case("missing.py", 2),
    Case("-m no_such_module", 1),
    Case("far", 1),
]

EXITS = [
    Case("exits.py end"),
    Case("exits.py none"),
    Case("exits.py three", 3),
    Case("exits.py text", 1, merged=True),
    Case("exits.py own", 9),
    Case("exits.py while_handling", 8),
    Case("exits.py atexit_fails"),
    Case("exits.py closed", 120),
    Case("exits.py error", 1),
    Case("-m exits three", 3),
    Case("interrupts.py raised", -2),
    Case("interrupts.py signal", -2, merged=True),
    Case("interrupts.py subclass", 1),
    Case("interrupts.py caught"),
    Case("-m interrupts raised", -2),
    Case("hooks.py shows", 1),
    Case("hooks.py fails", 1, merged=True),
    Case("hooks.py exits", 13),
    Case("hooks.py missing", 1),
    Case("threads.py"),
    Case("threads.py error", 1),
    Case("shutdown.py"),
]

OTHERS = [
    Case("workers.py spawn"),
    Case("forks.py go_on"),
    Case("forks.py error"),
    Case("sources.py"),
    Case("-m sources"),
    Case("reads.py", 1, stdin="Ada\nsecond\nthird\nfourth"),
    Case("again.py first"),
    Case("options.py --epochs three", 2),
    Case("bytecode.py", env="PYTHONDONTWRITEBYTECODE="),
    Case("-m bytecode", env="PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=cache"),
]

# Variants of the above, for the whole suite.
RARE = [
    Case("../context.py", cwd="far"),
    Case("linked/link.py"),
    Case("'with space.py'"),
    Case("noext"),
    Case("crlf.py"),
    Case("-I context.py"),
    Case("-E -s -B -q context.py"),
    Case("context.py", env="PYTHONHASHSEED=3 PYTHONUTF8=1 PYTHONUNBUFFERED=1"),
    Case("-u -m context"),
    Case("-m spaces.part"),
    Case("-m context", cwd="far", env="PYTHONPATH=.."),
    Case("./app/"),
    Case("$W/app"),
    Case("app", env="PYTHONSAFEPATH=1"),
    Case("indented.py", 1),
    Case("unclosed.py", 1),
    Case("future.py", 1),
    Case("wrong_cookie.py", 1),
    Case("utf16.py", 1),
    Case("-m gbk", 1),
    Case("-m broken", 1),
    Case("errors.py during", 1),
    Case("errors.py stop_iteration", 1),
    Case("errors.py assertion", 1),
    Case("errors.py bad_import", 1),
    Case("errors.py own_exit", 7),
    Case("-m errors bad_syntax", 1),
    Case("failing a", 1),
    Case("far/missing/missing.py a", 2),
    Case("-m no_such.module", 1),
    Case("-m far", 1),
    Case("bad.pyc", 1),
    Case("-m errors recursion", 1),
    Case("exits.py zero"),
    Case("exits.py minus", 255),
    Case("exits.py large", 44),
    Case("exits.py huge", 255),
    Case("exits.py true", 1),
    Case("exits.py object", 1),
    Case("exits.py tuple", 1),
    Case("exits.py quit", 5),
    Case("exits.py at_once", 6),
    Case("exits.py replaced", 1),
    Case("exits.py atexit_exits"),
    Case("exits.py no_streams", 1),
    Case("exits.py deleted"),
    Case("-m exits end"),
    Case("-m exits error", 1),
    Case("interrupts.py ignored"),
    Case("interrupts.py asyncio", -2),
    Case("interrupts.py terminated", -15),
    Case("interrupts.py hooked", -2),
    Case("hooks.py none", 1),
    Case("hooks.py audited", 1),
    Case("-m hooks shows", 1),
    Case("shutdown.py exit", 3),
    Case("shutdown.py error", 1),
    Case("-m shutdown"),
    Case("workers.py fork"),
    Case("workers.py forkserver"),
    Case("-m workers spawn"),
    Case("forks.py exit"),
    Case("forks.py interrupt"),
    Case("reads.py", 1),
    Case("-m again first"),
    Case("-m options --help"),
    Case("options.py --epochs 3"),
]

BROKEN = {
    "broken.py": b"def f(:\n    pass\n",
    "package/broken.py": b"x = = 1\n",
    "indented.py": b"if True:\n    x = 1\n  y = 2\n",
    "unclosed.py": b"x = (1,\ny = 2\n",
    "returns.py": b"x = 1\nreturn x\n",
    "future.py": b"from __future__ import no_such_feature\n",
    "gbk.py": 'print("ready")\nprint("\u4f60")\n'.encode("gbk"),
    "cookie.py": b"# coding: no-such-encoding\nprint(1)\n",
    "wrong_cookie.py": b"# coding: ascii\nprint('\xc3\xa9')\n",
    "utf16.py": "print(1)\n".encode("utf-16"),
    "empty.py": b"",
    "warned.py": b"print('\\d')\nif len('a') is 1: print('one')\n",
    "bad.pyc": b"not byte code at all",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs, with the files that a repository cannot hold or need not hold."""
    folder = tmp_path_factory.mktemp("programs").resolve() / "work"
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    context = (folder / "context.py").read_bytes()
    fails = (folder / "errors.py").read_bytes().replace(b"sys.argv[1]", b"'chained'")
    written = {
        "far/away.py": context,
        "with space.py": context,
        "noext": context,
        "latin.py": b"# coding: latin-1\nlatin = '\xe9'\n" + context,
        "bom.py": b"\xef\xbb\xbf" + context,
        "crlf.py": context.replace(b"\n", b"\r\n"),
        "package/__init__.py": b"import sys\nprint('package sees', sys.argv)\n",
        "package/__main__.py": context,
        "package/module.py": context,
        "spaces/__main__.py": context,
        "spaces/part.py": context,
        "app/__main__.py": context,
        "failing/__main__.py": fails,
        **BROKEN,
    }
    for name, content in written.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (folder / "far/link.py").symlink_to("../context.py")
    (folder / "linked").symlink_to("far")
    for name in ("app", "failing"):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.write(folder / name / "__main__.py", "__main__.py")
    py_compile.compile(str(folder / "errors.py"), str(folder / "compiled.pyc"), dfile="errors.py", doraise=True)
    return folder


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A main file like the real one, in a private folder that warnings leave out."""
    folder = tmp_path_factory.mktemp("importlib_bootstrap")
    shutil.copytree(PACKAGE, folder / "torchport", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "start.py").write_text(START)
    return folder / "start.py"


def execute(argv: list[str], case: Case, folder: Path) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV"))}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    env |= dict(entry.split("=") for entry in case.env.replace("$W", str(folder)).split())
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=folder / case.cwd,
        env=env,
        input=case.stdin.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if case.merged else subprocess.PIPE,
        timeout=60,
        preexec_fn=heeding_interrupts,
    )
    output, errors = (ADDRESS.sub("at 0x…", (text or b"").decode()) for text in (done.stdout, done.stderr))
    return done.returncode, output, errors


def heeding_interrupts() -> None:
    """A shell starts what it puts in the background, tests too, with Ctrl-C ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ours(argv: list[str], start: Path) -> list[str]:
    """What starts run() for a command line of plain Python."""
    takes_value = {"-X", "-W"}
    at = 0
    while argv[at].startswith("-") and argv[at] != "-m":
        at += 2 if argv[at] in takes_value else 1
    if argv[at] == "-m":
        return [*argv[:at], str(start), "module", *argv[at + 1 :]]
    return [*argv[:at], str(start), "script", *argv[at:]]


CASES = [
    *(pytest.param(case, id=case.name) for case in (*CONTEXT, *SYNTAX, *ERRORS, *EXITS, *OTHERS)),
    *(pytest.param(case, id=case.name, marks=pytest.mark.full) for case in RARE),
]


@pytest.mark.parametrize("case", CASES)
def test_same_as_python(case: Case, programs: Path, start: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    argv = shlex.split(case.command.replace("$W", str(folder)))
    outcomes = []
    for line in (argv, ours(argv, start)):
        shutil.copytree(programs, folder, symlinks=True)
        outcomes.append(execute(line, case, folder))
        shutil.rmtree(folder)
    plain, under_run = outcomes
    assert plain[0] == case.status, plain
    assert under_run == plain


TOLD = """
import traceback
def told(end):
    frames = traceback.extract_tb(end.error.__traceback__) if end.error else []
    print("end", end.reason, end.status, repr(end.error), [frame.name for frame in frames], flush=True)
run(sys.argv[1], sys.argv[2:], before=lambda: print("before", sys.argv, flush=True), on_end=told)
"""


@pytest.mark.parametrize(
    ("command", "status", "lines"),
    [
        ("script empty.py", 0, ["before ['empty.py']", "end finished 0 None []"]),
        (
            "script exits.py three",
            3,
            ["out", "end exited 3 None []", "atexit sees __main__ True True", "last []"],
        ),
        (
            "script exits.py text",
            1,
            ["out", "end exited 1 None []", "a message", "atexit sees __main__ True True"],
        ),
        ("script stops.py", 0, ["step 0", "step 1", "step 2", "finally", "end steps 0 None []", "atexit"]),
        ("module stops a", 0, ["before ['-m', 'a']", "finally", "end steps 0 None []", "atexit"]),
        (
            "script errors.py chained",
            1,
            [
                "end error 1 ValueError('chained') ['<module>', 'chained']",
                "KeyError: 'b'",
                "ValueError: chained",
            ],
        ),
        (
            "script interrupts.py raised",
            -signal.SIGINT,
            ["end interrupted 130 KeyboardInterrupt() ['<module>']", "KeyboardInterrupt", "atexit"],
        ),
        ("script returns.py", 1, ["SyntaxError: 'return' outside function"]),
        ("script missing.py", 2, ["end exited 2 None []"]),
    ],
)
def test_is_told(command: str, status: int, lines: list[str], programs: Path, start: Path) -> None:
    told = start.with_name("told.py")
    told.write_text("\n".join([*START.splitlines()[:-1], TOLD]))
    code, output, _ = execute(["-u", str(told), *command.split()], Case(command, merged=True), programs)
    seen = output.splitlines()
    assert (code, [line for line in seen if line in lines]) == (status, lines), output
    assert "importlib_bootstrap" not in output, output


def test_peel_takes_our_frames_from_anywhere() -> None:
    def call_back(text: str) -> Any:
        raise ValueError(text)

    with pytest.raises(ValueError, match="inner") as caught:
        # The callback is called by our code, which is called from here.
        Shell({"call": call_back}).run_cell(Cell(1, "call('inner')"), "n.ipynb cell [1]")
    frames = [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert frames[1:] == ["run_cell", "_run", "_execute", "<module>", "call_back"]
    assert [frame.name for frame in traceback.extract_tb(peel(caught.tb))] == [
        frames[0],
        "<module>",
        "call_back",
    ]

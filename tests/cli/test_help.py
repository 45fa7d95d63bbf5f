"""The help: at once, in the user's language, and the contract's options."""

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "numpy",
    "rich",
    "jinja2",
    "torchport.api",
    "torchport.report",
    "torchport.launch",
    "torchport.check",
    "torchport.stack",
    "packaging",
)


def torchport(*words, **environ):
    argv = [sys.executable, "-m", "torchport", *words]
    return subprocess.run(argv, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environ}, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["rehearse", "--help"],
        ["check", "--help"],
        ["stack", "--help"],
        ["explain", "--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_help_loads_nothing_that_takes_time(words):
    code = (
        "import sys\nfrom torchport.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as stop:\n    assert not stop.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_options_of_the_contract():
    text = torchport("rehearse", "--help").stdout
    for name in (
        "gpu",
        "gpus",
        "steps",
        "timeout",
        "strict",
        "shapes-only",
        "python",
        "html",
        "format",
        "lang",
    ):
        assert f"  --{name} " in text


def test_options_of_check():
    text = torchport("check", "--help").stdout
    names = "fix unsafe-fixes diff select ignore baseline write-baseline fail-on format output lang".split()
    assert [name for name in names if f"  --{name} " not in text] == []


def test_options_of_stack():
    text = torchport("stack", "--help").stdout
    names = "gpu driver cuda torch strict check offline format lang".split()
    assert [name for name in names if f"  --{name} " not in text] == []


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        (["--help"], {}, "Usage: torchport"),
        (["--help"], {"LANG": "zh_CN.UTF-8"}, "用法"),
        (["--lang", "zh", "--help"], {}, "用法"),
        (["rehearse", "--help", "--lang=zh"], {}, "显示此信息"),
        (["rehearse", "--lang", "en", "--help"], {"LANG": "zh_CN.UTF-8"}, "Show this message"),
        (["--lang", "zh", "rehearse", "-h"], {}, "显示此信息"),
    ],
)
def test_language(words, environ, expected):
    done = torchport(*words, PYTHONUTF8="1", **environ)
    assert done.returncode == 0
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rehears"], "'rehears'"),
        (["rehearse", "--gpsu", "2", "x.py"], "--gpus"),
        (["rehearse", "--gpus", "0", "x.py"], "--gpus"),
        (["rehearse", "--gpus"], "--gpus"),
        (["rehearse", "--lang", "fr", "x.py"], "'fr'"),
        (["rehearse", "--format", "xml", "x.py"], "'xml'"),
        (["rehearse"], "nothing to run"),
        (["rehearse", "--strict", "no-such.py", "--gpsu", "2"], "no-such.py: there is no such file"),
    ],
)
def test_usage_errors(words, said):
    done = torchport(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr

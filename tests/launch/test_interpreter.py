"""Which Python runs the project. The interpreters are shell scripts that answer as a real one would."""

import json
import sys
from pathlib import Path

import pytest

from torchport.launch.interpreter import InterpreterError, choose, executable, probe, release, usable


def python(path: Path, torch: str | None = "2.13.0+cpu", version: tuple[int, ...] = (3, 11, 7)) -> str:
    """A program that answers the probe."""
    answer = json.dumps({"python_version": version, "version": torch, "cuda": None, "numpy_version": "2.4.6"})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


def pick(tmp_path, environ=None, explicit=None):
    own = python(tmp_path / "own" / "python", torch="2.9.0")
    return choose(explicit, tmp_path / "project", tmp_path / "here", environ or {}, own).version


def test_the_own_python_comes_last(tmp_path):
    assert pick(tmp_path) == "2.9.0"


def test_the_projects_environment_comes_before_the_own(tmp_path):
    python(tmp_path / "project" / ".venv" / "bin" / "python", torch="2.5.0")
    assert pick(tmp_path) == "2.5.0"
    assert pick(tmp_path, explicit=python(tmp_path / "x", torch="2.6.0")) == "2.6.0"


def test_an_active_environment_comes_first(tmp_path):
    python(tmp_path / "project" / "venv" / "bin" / "python", torch="2.5.0")
    python(tmp_path / "conda" / "bin" / "python", torch="2.7.0")
    python(tmp_path / "active" / "bin" / "python", torch="2.8.0")
    conda = {"CONDA_PREFIX": str(tmp_path / "conda")}
    assert pick(tmp_path, conda) == "2.7.0"
    assert pick(tmp_path, {**conda, "VIRTUAL_ENV": str(tmp_path / "active")}) == "2.8.0"


def test_an_active_environment_without_torch_is_passed_over(tmp_path):
    python(tmp_path / "conda" / "bin" / "python", torch=None)
    python(tmp_path / "project" / ".venv" / "bin" / "python", torch="2.5.0")
    assert pick(tmp_path, {"CONDA_PREFIX": str(tmp_path / "conda")}) == "2.5.0"


def test_all_refusals_are_told(tmp_path):
    own = python(tmp_path / "own", torch=None)
    old = python(tmp_path / ".venv" / "bin" / "python", torch="2.3.1")
    with pytest.raises(InterpreterError) as caught:
        choose(None, tmp_path, tmp_path, {}, own)
    assert f"{own} has no torch" in str(caught.value)
    assert f"{old} has torch 2.3.1" in str(caught.value)


@pytest.mark.parametrize(
    ("torch", "version", "said"),
    [
        (None, (3, 11, 7), "-m pip install torch"),
        ("2.3.1+cu121", (3, 11, 7), "has torch 2.3.1+cu121; torchport needs 2.4 or newer"),
        ("1.13.1", (3, 10, 0), "has torch 1.13.1"),
        ("2.4.0", (3, 9, 18), "is Python 3.9.18; torchport needs 3.10"),
    ],
)
def test_too_old(tmp_path, torch, version, said):
    with pytest.raises(InterpreterError) as caught:
        usable(python(tmp_path / "python", torch, version))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "cannot be used as Python"),
        ("#!/bin/sh\necho hello\n", "does not answer as Python does: hello"),
        ("#!/bin/sh\necho broken >&2; exit 3\n", "does not answer as Python does: broken"),
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
    ],
)
def test_no_python(tmp_path, script, said):
    path = tmp_path / "python"
    if script:
        path.write_text(script)
        path.chmod(0o755)
    with pytest.raises(InterpreterError) as caught:
        probe(str(path))
    assert said in str(caught.value)


def test_the_probe_reads_this_python():
    facts = probe(sys.executable)
    assert facts.python_version == sys.version_info[:3]
    assert facts.version is not None and release(facts.version) >= (2, 4)


@pytest.mark.parametrize(("version", "expected"), [("2.13.0+cpu", (2, 13)), ("2.4.0a0+git", (2, 4)), ("2.10", (2, 10))])
def test_release(version, expected):
    assert release(version) == expected


def test_executable(tmp_path):
    inside = python(tmp_path / "env" / "bin" / "python")
    assert executable("env", tmp_path) == inside
    assert executable("env/bin/python", tmp_path) == inside
    assert executable("sh", tmp_path).endswith("/sh")
    assert executable("no-such-python", tmp_path) == "no-such-python"

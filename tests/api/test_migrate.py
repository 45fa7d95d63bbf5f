"""Migrate, below the command line: what the entry means, who may change what, and what is left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from torchport.api import git
from torchport.api.entry import find_entry, imported_from, of_copy, python_of
from torchport.api.migrate import Request, _write_patch, migrate
from torchport.facts import Facts
from torchport.launch.program import ProgramError
from torchport.migrate.apply import apply
from torchport.plan import Plan, Run
from torchport.record import Loss, Observation, Record, Site


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    for path in ("train.py", "pkg/train.py", "pkg/__main__.py", "src/inner/run.py", ".venv/bin/train", "sub/a.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("import torch\n")
    (root / "pyproject.toml").write_text("")
    (root / "linked.py").symlink_to("pkg/train.py")
    (tmp_path / "outside.py").write_text("")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    return root.resolve()


@pytest.mark.parametrize(
    ("path", "entry", "words", "folder", "file"),
    [
        (".", "train.py --lr 1", ("train.py", "--lr", "1"), ".", "train.py"),
        (".", "{project}/train.py", ("train.py",), ".", "train.py"),
        (".", "python -u train.py", ("python", "-u", "train.py"), ".", "train.py"),
        (
            ".",
            "torchrun --nproc-per-node 2 ./train.py",
            ("torchrun", "--nproc-per-node", "2", "train.py"),
            ".",
            "train.py",
        ),
        (".", "-m pkg.train --lr 1", ("-m", "pkg.train", "--lr", "1"), ".", "pkg/train.py"),
        (".", "-m pkg", ("-m", "pkg"), ".", "pkg/__main__.py"),
        (".", "pkg", ("pkg",), ".", "pkg/__main__.py"),
        (".", "-m inner.run", ("-m", "inner.run"), ".", "src/inner/run.py"),
        (".", "linked.py", ("linked.py",), ".", "pkg/train.py"),
        ("sub", "a.py", ("a.py",), "sub", "sub/a.py"),
        ("sub", "../train.py", ("../train.py",), "sub", "train.py"),
    ],
)
def test_what_an_entry_means(project, path, entry, words, folder, file):
    found = find_entry(path, entry.format(project=project), project)
    assert (found.words, found.folder, found.path) == (words, Path(folder), file)
    assert found.project == project


@pytest.mark.parametrize(
    ("path", "entry", "said"),
    [
        ("nowhere", "train.py", "there is no such folder"),
        (".", "", "--entry is missing"),
        (".", "trian.py", "Did you mean"),
        (".", "../outside.py", "belongs to the project in"),
        (".", "out.py", "belongs to the project in"),
        (".", ".venv/bin/train", "not one of the project's own files"),
        (".", "-m json.tool", "there is no such module"),
        (".", "src", "without a __main__.py"),
    ],
)
def test_an_entry_that_cannot_be_migrated(project, path, entry, said):
    with pytest.raises(ProgramError) as error:
        find_entry(path, entry, project)
    assert said in str(error.value)


def test_a_project_of_its_own_below(project):
    (project / "sub" / "pyproject.toml").write_text("")
    with pytest.raises(ProgramError, match=r"torchport migrate .*/sub"):
        find_entry(".", "sub/a.py", project)
    assert find_entry("sub", "a.py", project).project == project / "sub"


def test_modules_are_found_in_the_copy(project, tmp_path):
    """PYTHONPATH that leads into the project leads into the copy; what lies elsewhere stays."""
    entry = find_entry(".", "train.py", project)
    given = os.pathsep.join([str(project / "src"), "/usr/lib", "relative"])
    environ = of_copy({"PYTHONPATH": given}, entry, tmp_path / "copy", [project])
    assert environ["PYTHONPATH"].split(os.pathsep) == [
        str(tmp_path / "copy"),
        str(tmp_path / "copy/src"),
        "/usr/lib",
        "relative",
    ]
    assert "PYTHONPATH" not in of_copy({}, entry, tmp_path / "copy")


def test_a_project_that_is_installed_in_place(project):
    """The places of its run tell that the project itself was imported, and from where."""
    (project / "src/inner/__init__.py").write_text("")

    def run(*paths):
        seen = [Observation(1, "R101", "error", None, {"tensors": [{"born": Site(str(path), 1)}]}, 0) for path in paths]
        record = Record("record.jsonl", {}, tuple(seen), (Loss(0, 1.0, Site("train.py", 1)),))
        plan = Plan(("train.py",), "script", sys.executable, str(project), str(project))
        return Run("", plan, Facts(), (record,), (), 0, 1.0)

    assert imported_from(run(), project) == []
    assert imported_from(run("/usr/lib/a.py", "src/inner/run.py"), project) == []
    assert imported_from(run(project / "src/inner/run.py", project / "sub/a.py"), project) == [
        project / "src",
        project / "sub",
    ]


def test_the_python_of_the_project_is_not_in_the_copy(project):
    """It is taken from the project: relative to it where its configuration names it."""
    (project / "tools").mkdir()
    (project / "tools" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (project / "tools" / "python").chmod(0o755)
    (project / "pyproject.toml").write_text('[tool.torchport]\npython = "tools/python"\n')
    entry = find_entry(".", "train.py", project)
    assert python_of(entry, None, project, os.environ) == str(project / "tools/python")
    assert python_of(entry, sys.executable, project, os.environ) == sys.executable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_between_runs(project, tmp_path, monkeypatch, number):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        migrate(
            Request(entry="train.py", python=sys.executable),
            folder=project,
            environ=os.environ,
            tell=lambda step: os.kill(os.getpid(), number),
        )
    assert list(tmp_path.glob("torchport-migrate-*")) == []
    assert signal.getsignal(number) is before


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def repository(project):
    def run(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=project.parent, check=True, capture_output=True)

    (project.parent / ".gitignore").write_text("ignored.py\n")
    run("init", "-q")
    run("add", "-A")
    run("commit", "-qm", "all")
    return project


@needs_git
def test_what_is_not_committed(repository):
    """The whole work tree counts, wherever the project lies in it; our own patch does not."""
    assert git.changed(repository, but="torchport.patch") == []
    (repository / "torchport.patch").write_text("")
    (repository / "ignored.py").write_text("")
    assert git.changed(repository, but="torchport.patch") == []
    (repository / "n\xfc w.py").write_text("")
    subprocess.run(["git", "mv", "outside.py", "renamed.py"], cwd=repository.parent, check=True)
    assert sorted(git.changed(repository, but="torchport.patch")) == ["../renamed.py", "n\xfc w.py"]
    assert git.keeps(repository, ["train.py", "pkg/train.py"])
    assert not git.keeps(repository, ["train.py", "ignored.py"])


def test_without_git(project):
    assert git.changed(project, but="torchport.patch") == []
    assert not git.keeps(project, ["train.py"])


@pytest.fixture
def read_only():
    """A project in which we may not write; root, who may, becomes somebody else for the time."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        (project / "train.py").write_text("import torch\n")
        Path(folder).chmod(0o755)
        project.chmod(0o555)
        if user == 0:
            os.seteuid(65534)
        yield project
        os.seteuid(user)
        project.chmod(0o755)


def test_a_project_that_cannot_be_written(read_only, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        path = Path(_write_patch(read_only, b"the patch"))
        assert path.is_relative_to(folder) and path.read_bytes() == b"the patch"
    before = {"train.py": (read_only / "train.py").read_bytes()}
    with pytest.raises(PermissionError):
        apply(read_only, before, {"train.py": b"other"}, "now")
    assert (read_only / "train.py").read_bytes() == before["train.py"]

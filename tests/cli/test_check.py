"""``torchport check`` as a user types it."""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from torchport.cli import main

pytestmark = pytest.mark.usefixtures("english")

TRAIN = """\
import torch

x = torch.ones(3)
x.to("cuda")
print(x.sum())
"""
FIXED = TRAIN.replace("x.to", "x = x.to")
# One rule that all tests ask for: what others find here is their own affair.
ONLY = ("--select", "discarded-to")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.torchport]\n")
    return tmp_path


def write(project, name, text):
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def check(project, *words, command="check"):
    """In this process, which is quicker by far."""
    out, err = io.StringIO(), io.StringIO()
    here = os.getcwd()
    os.chdir(project)
    try:
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
            main([command, "--lang", "en", *words])
    finally:
        os.chdir(here)
    return Done(stopped.value.code, out.getvalue(), err.getvalue())


def check_apart(project, *words, **options):
    environ = {**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    argv = [sys.executable, "-m", "torchport", "check", *words]
    return subprocess.run(argv, cwd=project, env=environ, capture_output=True, text=True, check=False, **options)


def configure(project, text):
    write(project, "pyproject.toml", "[tool.torchport]\n" + text)


def test_a_finding_is_shown_with_its_line(project):
    write(project, "pkg/train.py", TRAIN)
    done = check_apart(project, *ONLY)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "C101 error  pkg/train.py:4:1  discarded-to\n"
        '    4 │ x.to("cuda")\n'
        "      │ ^^^^^^^^^^^^\n"
        '    `x.to("cuda")` moves nothing: `.to()` gives back the moved tensor, and nobody keeps it\n'
        '    Fix: Keep what it gives back: `x = x.to("cuda")`\n'
        "\n"
        "1 error in 1 of 1 file\n"
        "--fix repairs 1\n"
    )


def test_nothing_found(project):
    write(project, "train.py", FIXED)
    done = check(project, *ONLY)
    assert (done.returncode, done.stdout) == (0, "nothing found in 1 file\n")


def test_paths_are_those_of_the_working_directory(project):
    write(project, "pkg/train.py", TRAIN)
    write(project, "pkg/other.py", TRAIN)
    assert " train.py:4:1 " in check(project / "pkg", "train.py", *ONLY).stdout
    twice = check(project, "pkg", "pkg/train.py", str(project / "pkg"), *ONLY).stdout
    assert twice.count("C101") == 2
    write(project, "other/empty.py", "")
    assert f" {project}/pkg/train.py:4:1 " in check(project / "other", "../pkg", *ONLY).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gone.py"], "gone.py: there is no such file or folder"),
        (["--select", "discarded-too"], "no rule is named discarded-too; the nearest are discarded-to"),
        (["--ignore", "C101,C1O1"], "no rule is named C1O1"),
        (["--select", "zzzzzz"], "no rule is named zzzzzz; ids look like C101"),
        (["--baseline", "gone.json"], "gone.json: No such file or directory; --write-baseline makes one"),
        (["--baseline", "train.py"], "train.py: this is no baseline"),
        (["--diff", "--format", "json"], "--diff prints a patch"),
        (["--fix", "--write-baseline"], "--write-baseline goes with no repairs"),
        (["--output", "no/such/report.txt"], "there is no folder no/such"),
        (["--write-baseline", "--baseline", "no/such/known.json"], "no/such/known.json: No such file"),
        (["--format", "xml"], "'xml'"),
        (["--fail-on", "never"], "'never'"),
    ],
)
def test_usage_errors(project, words, said):
    write(project, "train.py", TRAIN)
    done = check(project, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('select = ["C1O1"]\n', "[tool.torchport] C1O1"),
        ('torch = "new"\n', "torch = 'new': a version"),
        ('exclude = "old"\n', "a list"),
        ("[", "pyproject.toml"),
    ],
)
def test_mistakes_in_the_configuration(project, text, said):
    write(project, "train.py", TRAIN)
    configure(project, text)
    done = check(project)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--select", "C1"], True),
        (["--select", "c101"], True),
        (["--select", "C7,discarded-to"], True),
        (["--select", "C7", "--select", "C101"], True),
        (["--select", "C102"], False),
        (["--ignore", "C1"], False),
        (["--select", "C1", "--ignore", "discarded_to"], False),
    ],
)
def test_select_and_ignore(project, words, expected):
    write(project, "train.py", TRAIN)
    assert ("C101" in check(project, *words).stdout) is expected


def test_configuration(project):
    write(project, "train.py", TRAIN)
    write(project, "old/train.py", TRAIN)
    write(project, "tests/a.py", TRAIN)
    configure(project, 'select = ["C101", "R2"]\nexclude = ["old", "tests/*"]\n')
    done = check(project)
    assert done.stdout.count("C101") == 1
    assert " old/train.py:4:1 " in check(project, "old/train.py").stdout  # who names a file means it
    configure(project, 'ignore = ["C1"]\n')
    assert "C101" not in check(project).stdout
    assert "C101" in check(project, "--ignore", "C7").stdout


@pytest.mark.parametrize(("least", "code"), [("error", 0), ("warning", 0), ("info", 1)])
def test_fail_on(project, least, code):
    write(project, "requirements.txt", "torch>=2.1\n")
    done = check(project, "--fail-on", least)
    assert done.returncode == code
    assert "C962 info" in done.stdout


def test_a_file_that_does_not_parse_is_told_and_the_rest_checked(project):
    write(project, "old.py", "import torch\nprint 'x'\n")
    write(project, "latin.py", "# torch é\n".encode("latin-1"))
    write(project, "nested.py", "import torch\nx = " + "(" * 500 + ")" * 500 + "\n")
    write(project, "null.py", b"import torch\nx = '\0'\n")
    write(project, "train.py", TRAIN)
    write(project, "fine.py", "print 'no word of it'\n")
    done = check(project, *ONLY)
    assert done.returncode == 1
    assert "C101" in done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("not checked")]
    assert [line.split()[2] for line in told] == ["latin.py", "nested.py:2", "null.py", "old.py:2"]


def test_a_file_that_does_not_parse_counts_as_a_warning(project):
    write(project, "old.py", "import torch\nprint 'x'\n")
    assert check(project, *ONLY).returncode == 1
    assert check(project, *ONLY, "--fail-on", "error").returncode == 0


def test_a_file_that_cannot_be_read(project):
    write(project, "train.py", TRAIN)
    os.mkfifo(project / "pipe.py")  # nobody would ever write into it
    assert "not checked  pipe.py  not a file" in check_apart(project, "pipe.py", timeout=30).stdout
    (project / "link.py").symlink_to("gone.py")
    (project / "folder.py").mkdir()
    done = check_apart(project, *ONLY, timeout=30)
    assert done.returncode == 1
    if os.geteuid():
        write(project, "secret.py", TRAIN).chmod(0)
        assert "not checked  secret.py  Permission denied" in check(project, *ONLY).stdout


# Repairs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TRAIN.encode(), FIXED.encode()),
        (TRAIN.replace("\n", "\r\n").encode(), FIXED.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + TRAIN.encode(), b"\xef\xbb\xbf" + FIXED.encode()),
        (
            b"# coding: latin-1\n" + "# é\n".encode("latin-1") + TRAIN.encode(),
            b"# coding: latin-1\n" + "# é\n".encode("latin-1") + FIXED.encode(),
        ),
        ("# 训练\n".encode() + TRAIN.rstrip("\n").encode(), "# 训练\n".encode() + FIXED.rstrip("\n").encode()),
        (b"\x0c\n" + TRAIN.encode(), b"\x0c\n" + FIXED.encode()),
    ],
    ids=["plain", "crlf", "bom", "latin-1", "no end of line", "form feed"],
)
def test_fix_keeps_all_else(project, before, after):
    path = write(project, "train.py", before)
    path.chmod(0o750)
    done = check(project, *ONLY, "--fix")
    assert path.read_bytes() == after
    assert path.stat().st_mode & 0o777 == 0o750
    assert done.returncode == 0
    assert "repaired  train.py:" in done.stdout and "1 repaired" in done.stdout
    assert sorted(each.name for each in project.iterdir()) == [".torchport", "pyproject.toml", "train.py"]


def test_fix_follows_a_link(project):
    write(project, "real.py", TRAIN)
    (project / "train.py").symlink_to("real.py")
    check(project, "train.py", *ONLY, "--fix")
    assert (project / "train.py").is_symlink()
    assert (project / "real.py").read_text() == FIXED


def test_diff_writes_nothing(project):
    path = write(project, "pkg/train.py", TRAIN.rstrip("\n").removesuffix("\nprint(x.sum())"))
    before = path.read_bytes()
    done = check(project, *ONLY, "--diff")
    assert path.read_bytes() == before
    assert done.returncode == 1
    assert done.stdout == (
        "--- pkg/train.py\n+++ pkg/train.py\n@@ -1,4 +1,4 @@\n import torch\n \n x = torch.ones(3)\n"
        '-x.to("cuda")\n\\ No newline at end of file\n+x = x.to("cuda")\n\\ No newline at end of file\n'
    )
    assert "1 would be repaired" in done.stderr
    patched = subprocess.run(["git", "apply", "-p0"], cwd=project, input=done.stdout, text=True, check=False)
    assert patched.returncode == 0
    assert path.read_bytes() == before.replace(b"x.to", b"x = x.to")


def test_unsafe_fixes_are_asked_for(project):
    path = write(project, "run.sh", "python -m torch.distributed.launch train.py\n")
    assert "--unsafe-fixes repairs 1" in check(project, "--fix").stdout
    assert "launch" in path.read_text()
    assert check(project, "--unsafe-fixes").returncode == 0
    assert path.read_text() == "torchrun train.py\n"


def test_a_full_disk_leaves_the_file_as_it_was(project):
    path = write(project, "train.py", "# long\n" * 100 + TRAIN)
    before = path.read_bytes()

    def no_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = check_apart(project, *ONLY, "--fix", preexec_fn=no_room)
    assert path.read_bytes() == before
    assert done.returncode == 1
    assert "the repairs could not be written: File too large" in done.stdout
    assert "C101" in done.stdout and "1 repaired" not in done.stdout
    assert [each.name for each in project.iterdir() if each.name.startswith(".train")] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(project):
    path = write(project, "pkg/train.py", TRAIN)
    path.parent.chmod(0o555)
    try:
        done = check(project, *ONLY, "--fix")
    finally:
        path.parent.chmod(0o755)
    assert "the repairs could not be written: Permission denied" in done.stdout
    assert path.read_text() == TRAIN


# Reports


def test_json_is_the_same_in_every_language(project):
    write(project, "train.py", TRAIN)
    documents = [json.loads(check(project, *ONLY, "--format", "json", "--lang", lang).stdout) for lang in ("en", "zh")]
    for document in documents:
        assert document.pop("seconds") >= 0
    assert documents[0] == documents[1]
    (finding,) = documents[0]["findings"]
    assert (finding["id"], finding["path"], finding["line"], finding["column"]) == ("C101", "train.py", 4, 1)
    assert finding["fix"]["safe"] is True
    assert documents[0]["schema"] == "torchport.check/1"
    assert documents[0]["exit_code"] == 1


@pytest.mark.parametrize(
    ("form", "begins"),
    [("json", "{"), ("sarif", "{"), ("github", "::error file=train.py,line=4,"), ("html", "<!doctype html>")],
)
def test_output(project, form, begins):
    write(project, "train.py", TRAIN)
    done = check(project, *ONLY, "--format", form, "--output", "report.out")
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 error in 1 of 1 file" in done.stderr
    assert (project / "report.out").read_text().startswith(begins)
    assert check(project, *ONLY, "--format", form).stdout.startswith(begins)


def test_output_that_cannot_be_written(project):
    write(project, "train.py", TRAIN)
    (project / "report").mkdir()
    assert check(project, *ONLY, "--output", "report").returncode == 2


# The baseline


def test_a_baseline_knows_what_is_there(project):
    write(project, "train.py", TRAIN)
    done = check(project, *ONLY, "--write-baseline")
    assert done.returncode == 0
    assert "1 known finding is left out (torchport-baseline.json)" in done.stdout
    known = ("--baseline", "torchport-baseline.json")
    write(project, "train.py", "# one more line\n" + TRAIN)
    done = check(project, *ONLY, *known)
    assert done.returncode == 0
    write(project, "train.py", TRAIN + 'x.to("cuda")\ny = torch.ones(3)\ny.to("cuda")\n')
    done = check(project, *ONLY, *known)
    assert done.stdout.count("C101") == 2  # the same line twice is known once
    write(project, "train.py", FIXED)
    done = check(project, *ONLY, *known)
    assert done.returncode == 0
    assert "1 entry of torchport-baseline.json is no longer needed:\n  C101  train.py  x.to" in done.stdout
    write(project, "other.py", FIXED)
    assert "no longer" not in check(project, "other.py", *ONLY, *known).stdout


def test_a_baseline_from_the_configuration_holds_in_every_folder(project):
    configure(project, 'baseline = "known.json"\nselect = ["C101"]\n')
    write(project, "pkg/train.py", TRAIN)
    assert check(project, "--write-baseline").returncode == 0
    assert json.loads((project / "known.json").read_text())["findings"][0]["path"] == "pkg/train.py"
    assert check(project / "pkg").returncode == 0
    assert check(project, "pkg/train.py", "--fix").returncode == 0
    assert (project / "pkg/train.py").read_text() == TRAIN  # what is put off is not repaired


# Notebooks, languages, interruptions


def test_a_notebook_is_repaired_in_its_cells(project):
    cells = [["%matplotlib inline\n", "import torch"], ["x = torch.ones(3)\n", 'x.to("cuda")  # ü']]
    content = {
        "cells": [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells],
        "metadata": {},
        "nbformat": 4,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    path = write(project, "demo.ipynb", text)
    done = check(project, *ONLY)
    assert "C101 error  demo.ipynb cell [2]:2:1  discarded-to\n    2 │ x.to" in done.stdout
    assert check(project, *ONLY, "--fix").returncode == 0
    assert path.read_text() == text.replace("x.to", "x = x.to")
    assert "repaired  demo.ipynb cell [2]:2:1" not in check(project, *ONLY, "--fix").stdout


def test_comments_silence(project):
    write(project, "a.py", TRAIN.replace('to("cuda")', 'to("cuda")  # torchport: ignore[C101]'))
    write(project, "b.py", TRAIN.replace("x.to", "# torchport: ignore[discarded-to]\nx.to"))
    write(project, "c.py", TRAIN.replace('("cuda")', '(\n    "cuda",\n)  # torchport: ignore'))
    write(project, "d.py", "# torchport: skip-file\n" + TRAIN)
    write(project, "e.py", TRAIN.replace("print(", "print(  # torchport: ignore\n"))
    assert check(project, *ONLY).stdout.count("C101") == 1


def test_many_files_in_several_processes(project):
    for number in range(60):
        write(project, f"part{number:02}.py", TRAIN)
    first = json.loads(check_apart(project, *ONLY, "--format", "json").stdout)
    again = json.loads(check_apart(project, *ONLY, "--format", "json").stdout)
    assert [each["path"] for each in first["findings"]] == [f"part{number:02}.py" for number in range(60)]
    assert first["findings"] == again["findings"]


def test_ctrl_c(project):
    for number in range(300):
        write(project, f"part{number}.py", TRAIN * 100)
    argv = [sys.executable, "-m", "torchport", "check"]
    child = subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    time.sleep(1.5)
    os.killpg(child.pid, signal.SIGINT)
    _output, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"Traceback" not in errors


def test_a_reader_that_leaves(project):
    write(project, "train.py", TRAIN)
    done = subprocess.run(
        f"{sys.executable} -m torchport check | true",
        shell=True,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["C101"], 0, "C101 error  discarded-to"),
        (["discarded_to"], 0, "C101 error  discarded-to"),
        (["c330"], 0, "torchrun --nproc_per_node"),
        (["R101"], 0, "R101 error  device-mismatch"),
        (["C000"], 2, "only ids of findings"),
        (["log.txt"], 2, "only ids of findings"),
        ([], 2, "TARGET"),
    ],
)
def test_explain(project, words, code, said):
    done = check(project, *words, command="explain")
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_explain_json(project):
    document = json.loads(check(project, "C101", "--format", "json", command="explain").stdout)
    assert (document["schema"], document["id"]) == ("torchport.explanation/1", "C101")

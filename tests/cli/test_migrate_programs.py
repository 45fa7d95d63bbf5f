"""``torchport migrate`` on other programs than one script: notebooks, ranks, modules; and when it is interrupted."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from torchport.migrate import apply as applying

PROJECTS = Path(__file__).parents[1] / "projects"
COMMAND = [sys.executable, "-m", "torchport", "migrate", "--python", sys.executable]
ENVIRON = {**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def migrate(folder, *words, **more):
    done = subprocess.run(
        [*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=600, env=ENVIRON, **more
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false")
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


CELLS = (
    """
    %matplotlib inline
    import torch
    from torch import nn
    """,
    """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
            self.shift = torch.ones(4)

        def forward(self, x):
            return self.fc(x + self.shift + torch.zeros(x.shape))
    """,
    """
    %%time
    torch.manual_seed(0)
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    """,
    """
    for epoch in range(3):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    """
    model(x).detach().numpy().sum()
    """,
)


def notebook():
    cells = [
        {
            "cell_type": "code",
            "execution_count": number,
            "metadata": {},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": [f"as it was {number}"]}],
            "source": textwrap.dedent(cell).strip().splitlines(keepends=True),
        }
        for number, cell in enumerate(CELLS, 1)
    ]
    cells.insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# A model"]})
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@needs_git
@pytest.mark.full
def test_a_notebook_that_never_mentions_a_device(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps(notebook(), indent=1))
    done = migrate(tmp_path, ".", "--entry", "train.ipynb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with 3 losses as on the CPU, bit for bit" in done.stdout
    git(tmp_path, "apply", "-p0", "torchport.patch")
    after = json.loads(path.read_text())
    before = notebook()
    sources = ["".join(cell.pop("source")) for cell in after["cells"]]
    for cell in before["cells"]:
        cell.pop("source")
    assert after == before  # all but the sources
    for cell, line in (
        (0, "device = torch.device("),
        (2, 'self.register_buffer("shift", torch.ones(4), persistent=False)'),
        (2, "torch.zeros(x.shape, device=x.device)"),
        (3, "model = Net().to(device)"),
        (5, "model(x).detach().cpu().numpy().sum()"),
    ):
        assert line in sources[cell], (line, sources)
    assert sources[1] == "# A model"
    again = migrate(tmp_path, ".", "--entry", "train.ipynb")
    assert again.returncode == 0 and "needs no change" in again.stdout, again.stdout + again.stderr


def copied(name, folder):
    return Path(shutil.copytree(PROJECTS / name / "faulty", folder / name))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "words", "ranks"),
    [
        ("ddp", ["--gpus", "2", "--entry", "train.py"], 2),
        ("data_parallel", ["--gpus", "2", "--entry", "train.py"], 1),
    ],
)
def test_several_gpus(tmp_path, name, words, ranks):
    project = copied(name, tmp_path)
    done = migrate(project, *words, "--format", "json", "--lang", "zh")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 0, done.stdout + done.stderr
    assert (told["schema"], told["clean"], told["ranks"]) == ("torchport.migration/1", True, ranks)
    assert told["losses"]["on_gpu"]["same"] and told["losses"]["on_cpu"]["same"]
    assert told["losses"]["on_gpu"]["before"]
    assert (told["left"], told["failure"], told["applied"]) == ([], None, False)
    assert Path(told["patch_path"]).read_text() == told["patch"]
    if name == "ddp":
        assert "torch.cuda.set_device(" in told["patch"]
        faults = [(each["id"], each["path"], each["line"]) for each in told["findings"]]
        assert len(faults) == len(set(faults)), "what two ranks saw is told twice"
        assert told["patch"].count("+            y = y.to(device)") == 1


SCRIPT = """
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = torch.nn.Linear(2, 2).to(device)
model(torch.ones(2)).sum().backward()
"""


@pytest.mark.full
def test_a_module_that_is_found_in_the_project(tmp_path):
    """PYTHONPATH leads into the project: it is the copy that runs, and the module's file that is repaired."""
    (tmp_path / "setup.cfg").write_text("")
    (tmp_path / "src" / "inner").mkdir(parents=True)
    (tmp_path / "src" / "inner" / "train.py").write_text(SCRIPT)
    command = [*COMMAND, "--entry", "-m inner.train"]
    environ = {**ENVIRON, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- src/inner/train.py\n" in (tmp_path / "torchport.patch").read_text()
    assert (tmp_path / "src" / "inner" / "train.py").read_text() == SCRIPT


@needs_git
@pytest.mark.full
def test_a_folder_of_a_repository(tmp_path):
    """Line ends, mode and link stay; nothing is applied while another file of the repository is not committed."""
    project = tmp_path / "deep" / "project"
    (project / "src").mkdir(parents=True)
    train = project / "src" / "train.py"
    train.write_bytes(SCRIPT.lstrip().replace("\n", "\r\n").encode())
    train.chmod(0o755)
    (project / "train.py").symlink_to("src/train.py")
    (project / "setup.cfg").write_text("")
    (tmp_path / "notes.md").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    before = train.read_bytes()

    done = migrate(project, "--entry", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    git(project, "apply", "-p0", "torchport.patch")
    after = train.read_bytes()
    assert after == before.replace(b"torch.ones(2)", b"torch.ones(2, device=device)")
    git(project, "checkout", ".")

    (tmp_path / "notes.md").write_text("more")
    refused = migrate(project, "--entry", "train.py", "--apply")
    assert refused.returncode == 2
    assert "not committed (../../notes.md)" in refused.stderr
    assert train.read_bytes() == before
    git(tmp_path, "checkout", ".")

    done = migrate(project, "--entry", "train.py", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "git diff shows how" in done.stdout
    assert train.read_bytes() == after
    assert train.stat().st_mode & 0o777 == 0o755
    assert (project / "train.py").is_symlink()
    told = git(tmp_path, "status", "--porcelain").splitlines()
    assert told == [" M deep/project/src/train.py", "?? deep/project/torchport.patch"]
    assert list((project / ".torchport" / "backup").glob("*")) == []


WAITS = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_a_run(tmp_path, scratch, number):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(WAITS)
    started = tmp_path / "started"
    with subprocess.Popen(
        [*COMMAND, "--entry", f"train.py {started}"],
        cwd=project,
        env={**ENVIRON, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        end = time.monotonic() + 60
        while not started.exists():
            assert command.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        assert list(scratch.glob("torchport-migrate-*"))
        command.send_signal(number)
        _, said = command.communicate(timeout=30)
    assert command.returncode == 130
    assert "Traceback" not in said
    assert list(scratch.iterdir()) == []
    assert [path.name for path in project.iterdir()] == ["train.py"]


def test_too_long(tmp_path):
    (tmp_path / "train.py").write_text(WAITS)
    done = migrate(tmp_path, "--entry", f"train.py {tmp_path}/x", "--timeout", "3")
    assert done.returncode == 5
    assert "--timeout" in done.stderr.splitlines()[-1]


def test_a_disk_that_is_full(tmp_path, scratch):
    """A limit on the size of files stands for the disk: what is written last does not fit."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("")
    (project / "data.bin").write_bytes(b"x" * 200_000)
    done = migrate(
        project,
        *("--entry", "train.py", "--apply"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("File too large")
    assert sorted(path.name for path in project.iterdir()) == ["data.bin", "train.py"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (b"", 1, "never uses a GPU"),
        (b"import torch\nx = '\xff'\n", 4, "SyntaxError"),
    ],
)
def test_files_that_say_little(tmp_path, text, code, said):
    (tmp_path / "train.py").write_bytes(text)
    (tmp_path / "torn.py").write_bytes(b"import torch\nx = (\n\xff")
    done = migrate(tmp_path, "--entry", "train.py")
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout


def test_an_apply_that_was_killed_is_put_back(tmp_path):
    before, after = {"a.py": b"a = 1\n", "b.py": b"b = 1\n"}, {"a.py": b"a = 2\n", "b.py": b"b = 2\n"}
    for path, data in before.items():
        (tmp_path / path).write_bytes(data)
    pid = os.fork()
    if not pid:
        applying.signal.sigpending = lambda: os.kill(os.getpid(), signal.SIGKILL)
        applying.apply(tmp_path, before, after, "now")
    os.waitpid(pid, 0)
    assert (tmp_path / "a.py").read_bytes() == after["a.py"]
    # The files are put back before anything is run.
    done = migrate(tmp_path, "--entry", "a.py", "--gpu", "no-such-card")
    assert done.returncode == 2
    assert "an earlier --apply was killed half-way; put back as they were: a.py" in done.stderr
    assert {path: (tmp_path / path).read_bytes() for path in before} == before


EDITS_ITSELF = """
import pathlib, sys
with open(sys.argv[1], "a") as file:
    file.write("# edited while it ran\\n")
"""


@pytest.mark.full
def test_a_file_that_is_edited_meanwhile(tmp_path):
    """Nothing is applied over it, and the patch is there all the same."""
    train = tmp_path / "train.py"
    train.write_text(SCRIPT + EDITS_ITSELF)
    done = migrate(tmp_path, "--entry", f"train.py {train}", "--apply")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "train.py has changed while it was migrated" in done.stderr
    assert "torch.ones(2))" in train.read_text() and "edited while it ran" in train.read_text()
    assert "torch.ones(2, device=device)" in (tmp_path / "torchport.patch").read_text()

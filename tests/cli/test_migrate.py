"""``torchport migrate`` as a user types it: the patch, the proof, and what happens to the files."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
            self.shift = torch.ones(4)

        def forward(self, x):
            noise = torch.zeros(x.shape)  # kept as it is
            return self.fc(x + self.shift + noise)


    torch.manual_seed(0)
    data = TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
    model = Net()
    loss_of = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=8):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(model(data.tensors[0]).detach().numpy().sum())
"""
# The data could be made on the GPU; but then its batches could not be pinned.
PINNED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = torch.rand(32, 3)


    def batch():
        x = data[torch.randint(32, (4,))]
        return x.pin_memory() if device.type == "cuda" else x


    model = nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = batch()
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
EXPECTED = (
    "device = torch.device(",
    "noise = torch.zeros(x.shape, device=x.device)  # kept as it is",
    'self.register_buffer("shift", torch.ones(4), persistent=False)',
    "model = Net().to(device)",
    "loss_of = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0])).to(device)",
    "x, y = x.to(device), y.to(device)",
    ".detach().cpu().numpy()",
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.torchport]\n")
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAIN).lstrip())
    return tmp_path


def migrate(folder, *words):
    command = [sys.executable, "-m", "torchport", "migrate", "--python", sys.executable, *words]
    environ = {**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environ)


@pytest.mark.full
def test_a_patch_with_proof(project):
    before = (project / "train.py").read_text()
    done = migrate(project, "--entry", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    patch = (project / "torchport.patch").read_text()
    for line in EXPECTED:
        assert any(each.startswith("+") and line in each for each in patch.splitlines()), (line, patch)
    assert "bit for bit" in done.stdout
    assert (project / "train.py").read_text() == before
    assert sorted(path.name for path in project.iterdir()) == ["pyproject.toml", "torchport.patch", "train.py"]
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=project, check=True)
    assert "torchport" not in (project / "train.py").read_text()
    again = migrate(project, "--entry", "train.py")
    assert again.returncode == 0 and "needs no change" in again.stdout, again.stdout + again.stderr


@pytest.mark.full
def test_apply_keeps_what_was_there(project):
    before = (project / "train.py").read_text()
    done = migrate(project, "--entry", "train.py", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "device = torch.device(" in (project / "train.py").read_text()
    (backup,) = (project / ".torchport" / "backup").glob("*/train.py")
    assert backup.read_text() == before


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_apply_refuses_a_tree_with_changes(project):
    for words in (["init", "-q"], ["add", "pyproject.toml"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    before = (project / "train.py").read_text()
    done = migrate(project, "--entry", "train.py", "--apply")
    assert done.returncode == 2
    assert "not committed" in done.stderr
    assert (project / "train.py").read_text() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--entry is missing"),
        (["nowhere", "--entry", "train.py"], "nowhere: there is no such folder"),
        (["--entry", "trian.py"], "trian.py"),
        (["--entry", "train.py 'x"], "quotation"),
        (["--entry", "train.py", "--gpu", "a1000"], "a1000"),
    ],
)
def test_what_the_user_wrote_is_wrong(project, words, said):
    done = migrate(project, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


REFUSED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.rest = [nn.Linear(4, 4) for _ in range(2)]

        def forward(self, x):
            x = self.first(x)
            for layer in self.rest:
                x = layer(x)
            return x

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(3):
        loss = model(torch.ones(2, 4, device=device)).sum()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.full
def test_what_would_train_more_is_refused(project):
    """A ModuleList has layers trained that were not: the trace refuses it, and they are only moved."""
    (project / "train.py").write_text(textwrap.dedent(REFUSED).lstrip())
    done = migrate(project, "--entry", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    patch = (project / "torchport.patch").read_text()
    assert "ModuleList" not in patch
    assert "+        self.rest = [nn.Linear(4, 4).to(device) for _ in range(2)]" in patch
    assert "does not hold, and was taken back" in done.stdout


@pytest.mark.full
def test_a_repair_that_leads_to_another_fault_gives_way(project):
    (project / "train.py").write_text(textwrap.dedent(PINNED).lstrip())
    done = migrate(project, "--entry", "train.py")
    assert done.returncode == 0, done.stdout
    assert "+    x = batch().to(device)" in done.stdout
    assert "factory at its root at train.py:18 does not hold, and was taken back" in " ".join(done.stdout.split())

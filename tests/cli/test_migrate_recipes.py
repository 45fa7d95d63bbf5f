"""``torchport migrate --recipe`` as a user types it: what is applied, proven and refused, in one patch."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

TRAIN = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.drop = nn.Dropout(0.1)
            self.fc = nn.Linear(4 * 6 * 6, 3)

        def forward(self, x):
            return self.fc(self.drop(self.conv(x).relu().flatten(1)))


    def main():
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.rand(16, 3, 8, 8), torch.randint(3, (16,)))
        loader = DataLoader(data, batch_size=4, shuffle=True)
        model = Net().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            print(f"epoch {epoch}: loss {loss.item():.3f}")
        print(sorted(model.state_dict()))


    if __name__ == "__main__":
        main()
"""
# Every item is drawn anew: with workers it would be drawn elsewhere, and the losses would be others.
DRAWS = """
    import torch
    from torch.utils.data import DataLoader, Dataset


    class Noise(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return torch.randn(4)


    def main():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = torch.nn.Linear(4, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in DataLoader(Noise(), batch_size=4):
            x = x.to(device)
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()


    if __name__ == "__main__":
        main()
"""
# Draws from a generator of its own, keeps the best loss, and prints what a run that goes on has to print, too.
KEEPS = """
    import argparse
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def fit(model, optimizer, scheduler, loader, drawn, args):
        best, seen = float("inf"), 0
        for epoch in range(args.epochs):
            for (x,) in loader:
                x = x + 0.1 * torch.randn(x.shape, generator=drawn)
                loss = nn.functional.mse_loss(model(x), x)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen += len(x)
            scheduler.step()
            best = min(best, loss.item())
            print(f"epoch {epoch}: best {best:.6f} of {seen}")


    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int, default=3)
        args = parser.parse_args()
        torch.manual_seed(0)
        drawn = torch.Generator().manual_seed(1)
        loader = DataLoader(TensorDataset(torch.rand(16, 4)), batch_size=4, shuffle=True)
        model = nn.Linear(4, 4)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        fit(model, optimizer, scheduler, loader, drawn, args)


    if __name__ == "__main__":
        main()
"""


def migrate(folder, text, *recipes, words=()):
    (folder / "pyproject.toml").write_text("[tool.torchport]\n")
    (folder / "train.py").write_text(textwrap.dedent(text).lstrip())
    words = [*words, *(word for each in recipes for word in ("--recipe", each))]
    command = [sys.executable, "-m", "torchport", "migrate", "--python", sys.executable, "--entry", "train.py", *words]
    environ = {**os.environ, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split()), (folder / "torchport.patch").read_text()


@pytest.mark.full
@pytest.mark.parametrize("precision", ["amp", "amp-fp16"])
def test_recipes_together(tmp_path, precision):
    said, patch = migrate(tmp_path, TRAIN, "compile", precision, "backends", "loader", "paths")
    for each in ("loader applied", f"{precision} applied: on the GPU losses within", "compile applied"):
        assert each in said, said
    assert "on the CPU as before, bit for bit" in said
    assert "backends applied" in said and "memory_format=torch.channels_last" in patch
    assert "paths left out: it has no path of one machine alone" in said
    assert ("scaler.unscale_(optimizer)" in patch) == (precision == "amp-fp16")
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=tmp_path, check=True)
    assert "torchport" not in (tmp_path / "train.py").read_text()
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "['conv.bias', 'conv.weight', 'fc.bias', 'fc.weight']" in done.stdout, done.stderr
    assert not done.stderr


@pytest.mark.full
def test_workers_that_would_draw_other_numbers_are_taken_back(tmp_path):
    said, patch = migrate(tmp_path, DRAWS, "loader")
    assert "loader applied: all losses as before, bit for bit" in said
    assert "pin_memory" in patch and "num_workers" not in patch


@pytest.mark.full
def test_curves_need_tensorboard(tmp_path):
    (tmp_path / "torchport.patch").write_text("")
    said, patch = migrate(tmp_path, TRAIN, "tensorboard")
    if importlib.util.find_spec("tensorboard") is None:
        assert "tensorboard left out: tensorboard is missing: pip install tensorboard" in said
        assert not patch
    else:
        assert "tensorboard applied: all losses as before, bit for bit" in said
        assert '+            writer.add_scalar("train/loss", loss.item(), epoch)' in patch and "runs/" not in patch


@pytest.mark.full
@pytest.mark.parametrize("steps", [(), ("--steps", "7")])
def test_a_run_that_goes_on_prints_what_the_whole_one_does(tmp_path, steps):
    said, patch = migrate(tmp_path, KEEPS, "checkpoint", words=steps)
    assert "checkpoint applied: all losses as before, bit for bit" in said, said
    assert "not saved" not in patch
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=tmp_path, check=True)

    def run(*words):
        command = [sys.executable, "train.py", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()

    whole = run()
    assert run("--epochs", "2") == whole[:2]
    assert run("--resume", "checkpoint.pt") == whole[2:]


@pytest.mark.full
def test_the_scaler_is_in_the_checkpoint(tmp_path):
    said, patch = migrate(tmp_path, TRAIN, "checkpoint", "amp-fp16")
    assert "checkpoint applied" in said and "amp-fp16 applied" in said, said
    assert (
        'save_checkpoint("checkpoint.pt", {"epoch": epoch}, model=model, optimizer=optimizer, scaler=scaler)' in patch
    )
    assert "load_checkpoint(resume, model=model, optimizer=optimizer, scaler=scaler)" in patch
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=tmp_path, check=True)
    for resume in ("", "checkpoint.pt"):
        environ = {**os.environ, "RESUME": resume}
        subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, env=environ)

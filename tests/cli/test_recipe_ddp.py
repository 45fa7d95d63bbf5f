"""``torchport migrate --recipe ddp`` and what is refused: several ranks have the losses of one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = ROOT / "tests" / "projects"


def migrate(folder, *words):
    command = [sys.executable, "-m", "torchport", "migrate", "--python", sys.executable, "--format", "json", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=500, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else done.stderr


def copied(tmp_path, project):
    folder = shutil.copytree(project, tmp_path / "project")
    (folder / "pyproject.toml").write_text("[tool.torchport]\n")
    return folder


def furthest(proof):
    before, after = ([each["value"] for each in proof[name]] for name in ("before", "after"))
    assert len(before) == len(after) > 0
    return max(abs(a - b) / max(abs(a), abs(b)) for a, b in zip(before, after, strict=True))


@pytest.mark.full
@pytest.mark.parametrize("project", [ROOT / "examples" / "laptop", PROJECTS / "data_parallel" / "right"])
def test_ddp_has_the_losses_of_one_process(tmp_path, project):
    folder = copied(tmp_path, project)
    code, told = migrate(folder, "--entry", "train.py", "--recipe", "ddp")
    assert code == 0, told
    (recipe,) = told["recipes"]
    assert recipe["applied"]
    assert recipe["on_cpu"]["same"]
    assert recipe["on_gpu"]["same"]
    assert furthest(recipe["proof"]) < 1e-3
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=folder, check=True)
    text = (folder / "train.py").read_text()
    assert "DataParallel(model)" not in text.replace("DistributedDataParallel", "")
    assert "torchport" not in text


@pytest.mark.full
def test_a_recipe_without_a_place_changes_nothing(tmp_path):
    folder = copied(tmp_path, PROJECTS / "ddp" / "right")
    code, told = migrate(folder, "--entry", "torchrun --nproc-per-node 2 train.py", "--recipe", "ddp")
    assert code == 0, told
    assert [each["applied"] for each in told["recipes"]] == [False]
    assert told["patch"] == ""


def test_an_unknown_recipe_is_refused(tmp_path):
    (tmp_path / "train.py").write_text("")
    code, said = migrate(tmp_path, "--entry", "train.py", "--recipe", "faster")
    assert code == 2
    assert "faster: there is no such recipe; there are" in said

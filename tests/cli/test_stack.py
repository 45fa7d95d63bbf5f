"""torchport stack from the command line: against a mirror on this machine, and, in full, against the real indexes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchport.stack.lockfile import read

LAPTOP = "import torch\nprint(torch.ones(2))\n"


def torchport(*words, folder, **environ):
    argv = [sys.executable, "-m", "torchport", "stack", *words]
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "VIRTUAL_ENV", "COL"))
    }
    return subprocess.run(
        argv, capture_output=True, text=True, cwd=folder, env={**clean, "LC_ALL": "C.UTF-8", **environ}, check=False
    )


@pytest.fixture
def project(tmp_path, mirror):
    """A small project whose mirrors are all on this machine."""
    (tmp_path / "train.py").write_text(LAPTOP)
    (tmp_path / "requirements.txt").write_text("torch>=2.0\nnumpy\n")
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.torchport.mirrors]\npypi = "{mirror}/simple"\ntorch = "{mirror}/whl"\n'
    )
    return tmp_path


def lock(folder):
    return {f"{each.torch}+{each.backend}": each for each in read((folder / "torchport.lock").read_text())}


def versions(stack):
    return {each.name: each.version for each in stack.packages}


def test_a_card_gets_its_index_with_hashes_for_the_whole_closure(project):
    done = torchport("--gpu", "v100", "--driver", "535.54.03", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    stack = lock(project)["2.14.1+cu126"]
    assert versions(stack) == {
        "filelock": "3.1",
        "numpy": "2.1.0",
        "nvidia-cudnn-cu12": "9.10.2.21",
        "torch": "2.14.1+cu126",
    }
    assert all(each.hashes[0].startswith("sha256:") for each in stack.packages)
    assert stack.index == "https://download.pytorch.org/whl/cu126"  # the lock knows of no mirror
    assert (stack.driver, stack.capability, stack.glibc) == ("525.60.13", "7.0", "2.28")
    assert "torch 2.14.1 for CUDA 12.6, Python 3.12, linux-x86_64" in done.stdout


def test_cards_and_the_cpu_stand_side_by_side(project):
    for words in (["--gpu", "v100", "--driver", "535"], ["--gpu", "a100", "--driver", "470"], ["--cuda", "cpu"]):
        done = torchport(*words, "--torch", "2.6", folder=project)
        assert done.returncode == 0, done.stdout + done.stderr
    assert set(lock(project)) == {"2.6.0+cu124", "2.6.0+cu118", "2.6.0+cpu"}
    again = torchport("--cuda", "cpu", "--torch", "2.6", folder=project)
    assert "nothing, since it was locked last" in again.stdout
    assert lock(project)["2.6.0+cpu"].driver is None


def test_torchvision_comes_from_the_index_of_torch(project):
    (project / "requirements.txt").write_text("torch\ntorchvision==0.21.0\n")
    assert torchport("--gpu", "t4", "--driver", "560", "--cuda", "12.6", folder=project).returncode == 0
    assert versions(lock(project)["2.6.0+cu126"])["torchvision"] == "0.21.0+cu126"


def test_old_torch_is_locked_with_the_numpy_it_was_made_for(project):
    (project / ".python-version").write_text("3.11\n")
    done = torchport("--gpu", "a100", "--driver", "470", "--torch", "2.1.0", folder=project)
    assert done.returncode == 0, done.stdout
    assert versions(lock(project)["2.1.0+cu118"])["numpy"] == "1.26.0"
    assert "NumPy 1" in done.stdout


def test_a_requirement_that_wants_another_torch_gets_it(project):
    (project / "requirements.txt").write_text("torch\nneeds-old-torch\n")
    done = torchport("--cuda", "cpu", folder=project)
    assert done.returncode == 0, done.stdout
    assert set(lock(project)) == {"2.6.0+cpu"}
    assert "torch 2.15.0 contradicts another requirement" in done.stdout


def test_requirements_that_contradict_each_other_write_nothing(project):
    (project / "requirements.txt").write_text("torch>=2.14\nneeds-old-torch\n")
    done = torchport("--cuda", "cpu", folder=project)
    assert done.returncode == 1
    assert "needs-old-torch" in done.stdout
    assert not (project / "torchport.lock").exists()


def test_a_folder_of_wheels_is_enough(project, wheels):
    folder = project / "wheels"
    folder.mkdir()
    for path in [*(wheels / "simple").glob("*.whl"), *(wheels / "whl" / "cu126").glob("*.whl")]:
        (folder / path.name).write_bytes(path.read_bytes())
    (project / "pyproject.toml").write_text("")
    done = torchport("--gpu", "v100", "--driver", "535", "--offline", "wheels", folder=project)
    assert done.returncode == 0, done.stdout
    stack = lock(project)["2.14.1+cu126"]
    assert all(each.url is None and each.hashes for each in stack.packages)


def test_a_mirror_may_be_a_folder_for_torch_alone(project, wheels, mirror):
    (project / "pyproject.toml").write_text(
        f'[tool.torchport.mirrors]\npypi = "{mirror}/simple"\ntorch = "{wheels}/whl/cpu"\n'
    )
    assert torchport("--cuda", "cpu", folder=project).returncode == 0
    assert set(lock(project)) == {"2.15.0+cpu"}


def test_json_has_every_reason(project):
    done = torchport("--gpu", "v100", "--driver", "535", "--format", "json", "--lang", "zh", folder=project)
    document = json.loads(done.stdout)
    assert document["schema"] == "torchport.stack/1"
    assert document["stack"]["torch"] == "2.14.1"
    thrown_out = {f"{each['torch']}+{each['backend']}": each["reasons"] for each in document["rejected"]}
    assert thrown_out["2.15.0+cu132"][0] == {
        "kind": "architecture",
        "capability": "7.0",
        "codes": "7.5 8.0 8.6 9.0 10.0 12.0",
        "backend": "cu132",
    }


def test_requirements_install_by_address_and_hash(project):
    done = torchport("--cuda", "cpu", "--format", "requirements", folder=project)
    (project / "pinned.txt").write_text(done.stdout)
    target = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--require-hashes", "--no-index"]
    target += ["--target", "site", "--python-platform", "x86_64-manylinux_2_28", "--python-version", "3.12"]
    installed = subprocess.run([*target, "-r", "pinned.txt"], cwd=project, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    assert (project / "site" / "torch" / "__init__.py").exists()


def test_what_was_never_built(project):
    done = torchport("--gpu", "a100", "--driver", "535", "--torch", "2.9", "--cuda", "12.1", folder=project)
    assert done.returncode == 1
    assert "torch==2.9.* with CUDA 12.1 was never built" in done.stdout
    assert "torch 2.5.1+cu121" in done.stdout
    assert not (project / "torchport.lock").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--gpu", "rtx-9999x"], 2, "no GPU is named rtx-9999x"),
        (["--driver", "new"], 2, "--driver new"),
        (["--cuda", "twelve"], 2, "torch was built for cu102"),
        (["--torch", "the best"], 2, "--torch 'the best'"),
        (["--offline", "nowhere"], 2, "no such folder"),
        (["--offline", "."], 2, "no wheel"),
        (["--check"], 2, "there is no lock yet"),
        (["elsewhere"], 2, "elsewhere"),
    ],
)
def test_refusals(project, words, code, says):
    done = torchport(*words, folder=project)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_index_that_does_not_answer_leaves_the_choice_and_no_lock(project):
    (project / "pyproject.toml").write_text('[tool.torchport.mirrors]\ntorch = "http://127.0.0.1:9/whl"\n')
    done = torchport("--cuda", "cpu", folder=project, UV_HTTP_TIMEOUT="2", UV_HTTP_RETRIES="0")
    assert done.returncode == 3
    assert "torch 2.15.0 for the CPU" in done.stdout
    assert "not written" in done.stdout


def test_without_uv_the_choice_is_told_and_how_to_get_uv(project):
    hidden = "import sys; sys.modules['uv'] = None; sys.argv[:] = ['torchport', 'stack', '--cuda', 'cpu']\n"
    code = f"{hidden}import importlib.util as u\nfind = u.find_spec\n"
    code += "u.find_spec = lambda name, *a: None if name == 'uv' else find(name, *a)\n"
    code += "from torchport.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, env={"PATH": ""}, check=False
    )
    assert done.returncode == 3
    assert "pip install uv" in " ".join(done.stdout.split())


def test_check_tells_what_drifted(project, tmp_path):
    assert torchport("--cuda", "cpu", folder=project).returncode == 0
    clean = torchport("--check", folder=project)
    assert (clean.returncode, "nothing has drifted" in clean.stdout) == (0, True)
    (project / "requirements.txt").write_text("torch>=2.0\nnumpy\nfilelock>=3\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    drifted = torchport("--check", "--format", "json", folder=project)
    assert drifted.returncode == 1
    found = json.loads(drifted.stdout)["stacks"][0]["drifts"]
    kinds = [each["kind"] for each in found]
    assert kinds[0] == "asked-since" and found[0]["asked"] == "filelock>=3"
    assert kinds.count("missing") == 3
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert ("python" in kinds) == (python != "3.12")


def test_check_holds_a_gpu_stack_against_the_driver_that_is_named(project):
    assert torchport("--gpu", "v100", "--driver", "535", folder=project).returncode == 0
    done = torchport("--check", "--gpu", "rtx-5090", "--driver", "470", folder=project)
    assert done.returncode == 1
    assert "the driver is 470" in done.stdout
    assert "(12.0) is not among" in done.stdout


@pytest.mark.full
def test_the_default_gpu_build_is_resolved_in_full_and_is_as_the_table_says(tmp_path):
    """The real index: every file of the closure with hash and size, and the libraries that the table names."""
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\ntorchvision\nnumpy\n")
    done = torchport("--gpu", "rtx-4090", "--driver", "580.95.05", "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    document = json.loads(done.stdout)
    packages = {each["name"]: each for each in document["stack"]["packages"]}
    assert packages["torch"]["version"] == "2.14.1" and packages["torchvision"]["version"] == "0.29.2"
    assert all(each["hashes"] and each["size_bytes"] for each in packages.values())
    assert 2.5e9 < sum(each["size_bytes"] for each in packages.values()) < 3.5e9
    assert document["lock"]["disagreements"] == []
    assert packages["nvidia-cudnn-cu13"]["version"] == "9.24.0.43"
    assert packages["nvidia-nccl-cu13"]["version"] == "2.30.7"
    assert packages["triton"]["version"].startswith("3.8.")


@pytest.mark.full
def test_the_cpu_lock_installs_and_torch_runs(tmp_path):
    """For real: the CPU wheel that this machine has, the rest from the index, installed by hash, then compared."""
    folders = [Path(each) for each in os.environ.get("PIP_FIND_LINKS", "").split()]
    found = [path for folder in folders for path in folder.glob("torch-*+cpu-*.whl")]
    python = f"{sys.version_info.major}{sys.version_info.minor}"
    found = [path for path in found if f"-cp{python}-" in path.name]
    if not found:
        pytest.skip("no CPU wheel of torch for this Python in a folder of PIP_FIND_LINKS")
    version = found[0].name.split("-")[1].split("+")[0]
    (tmp_path / "train.py").write_text(LAPTOP)
    (tmp_path / "requirements.txt").write_text(f"torch=={version}\nnumpy\n")
    (tmp_path / ".python-version").write_text(f"{python[0]}.{python[1:]}\n")
    (tmp_path / "pyproject.toml").write_text(f'[tool.torchport.mirrors]\ntorch = "{found[0].parent}"\n')
    done = torchport("--cuda", "cpu", "--format", "requirements", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "pinned.txt").write_text(done.stdout)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, ".venv"], cwd=tmp_path, check=True)
    install = [*uv, "pip", "install", "-q", "--no-deps", "--require-hashes", "--find-links", str(found[0].parent)]
    subprocess.run([*install, "--python", ".venv/bin/python", "-r", "pinned.txt"], cwd=tmp_path, check=True)
    ran = subprocess.run([".venv/bin/python", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "tensor([1., 1.])\n"
    compared = torchport("--check", folder=tmp_path)
    assert compared.returncode == 0, compared.stdout

"""What a project wants, from the files that say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchport.resolved import Wanted
from torchport.stack.read import read


def project(folder: Path, **files: str) -> Wanted:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read(folder)


def asked(wanted: Wanted) -> list[str]:
    return [each.text for each in wanted.asked]


@pytest.mark.parametrize(
    ("name", "text", "expected", "python", "cuda"),
    [
        (
            "requirements.txt",
            "torch==2.1.0 \\\n  --hash=sha256:aa\n# no\nnumpy<2 # old\n-e .\n",
            ["torch==2.1.0", "numpy<2"],
            [],
            None,
        ),
        (
            "requirements.txt",
            "--extra-index-url https://download.pytorch.org/whl/cu118\ntorch==2.0.1+cu118\n",
            ["torch==2.0.1+cu118"],
            [],
            "11.8",
        ),
        (
            "requirements.txt",
            "-e git+https://x.org/a/b.git@v1#egg=clip\n",
            ["clip @ git+https://x.org/a/b.git@v1"],
            [],
            None,
        ),
        ("requirements-dev.txt", "pytest\n", [], [], None),
        (
            "pyproject.toml",
            '[project]\nrequires-python = ">=3.9"\ndependencies = ["torch>=2", "torchvision"]\n'
            '[[tool.uv.index]]\nurl = "https://download.pytorch.org/whl/cu126"\n',
            ["torch>=2", "torchvision"],
            [">=3.9"],
            "12.6",
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "~2.1"\n'
            'rich = {version = "^13.1", extras = ["jupyter"]}\n',
            ["torch>=2.1,<2.2", "rich[jupyter]>=13.1,<14"],
            [">=3.10,<4"],
            None,
        ),
        (
            "setup.cfg",
            "[options]\npython_requires = >=3.8\ninstall_requires =\n    torch\n    tqdm\n",
            ["torch", "tqdm"],
            [">=3.8"],
            None,
        ),
        (
            "setup.py",
            "from setuptools import setup\nneeds = ['torch>=1.7']\n"
            "setup(install_requires=needs, python_requires='>=3.7')\n",
            ["torch>=1.7"],
            [">=3.7"],
            None,
        ),
        ("Pipfile", '[packages]\ntorch = "*"\n[requires]\npython_version = "3.11"\n', ["torch"], ["==3.11.*"], None),
        (".python-version", "3.10.4\n", [], ["==3.10.4"], None),
        (
            "environment.yml",
            "name: x\nchannels:\n  - pytorch\ndependencies:\n  - python=3.10\n"
            "  - pytorch::pytorch=1.13.1=py3.10_cuda11.7_0\n  - torchvision==0.14.1\n  - cudatoolkit=11.7\n"
            "  - cudnn\n  - numpy>=1.20\n  - pip\n  - pip:\n    - einops==0.6\n"
            "variables:\n  A: 1\n",
            ["torch==1.13.1.*", "torchvision==0.14.1", "numpy>=1.20", "einops==0.6"],
            ["==3.10.*"],
            "11.7",
        ),
    ],
)
def test_files(tmp_path: Path, name: str, text: str, expected: list[str], python: list[str], cuda: str | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    wanted = read(tmp_path)
    assert asked(wanted) == expected
    assert [each.text for each in wanted.python] == python
    assert (wanted.cuda and wanted.cuda[0]) == cuda
    assert all(each.path == name for each in (*wanted.asked, *wanted.python))


def test_files_that_point_to_each_other(tmp_path: Path) -> None:
    files = {"requirements.txt": "-r base.txt\ntqdm\n", "base.txt": "torch\n-r requirements.txt\n"}
    assert asked(project(tmp_path, **files)) == ["torch", "tqdm"]


def test_what_is_no_requirement_is_named(tmp_path: Path) -> None:
    wanted = project(
        tmp_path, **{"requirements.txt": "torch\n./vendored\nthis is not one\n", "pyproject.toml": "[project"}
    )
    assert asked(wanted) == ["torch"]
    assert [path for path, _line in wanted.skipped] == ["pyproject.toml", "requirements.txt", "requirements.txt"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n[[package]]\nname = "rich"\nversion = "1"\n'),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n'),
        ("Pipfile.lock", '{"default": {"torch": {"version": "==2.6.0"}}}'),
        ("conda-lock.yml", "package:\n- name: pytorch\n  version: 2.6.0\n"),
    ],
)
def test_the_torch_of_other_locks(tmp_path: Path, name: str, text: str) -> None:
    assert project(tmp_path, **{name: text}).locked == (("torch", "2.6.0", name),)


@pytest.mark.parametrize("text", ["", "no lock", "[package]\nname = 3\n", '[[package]]\nname = "torch"\n'])
def test_a_lock_that_is_none_says_nothing(tmp_path: Path, text: str) -> None:
    assert project(tmp_path, **{"uv.lock": text}).locked == ()


def test_imports_stand_in_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    source = (
        "import os\nimport torch, cv2\nfrom PIL import Image\nfrom .near import x\nimport helper\nimport strangelib\n"
    )
    wanted = project(tmp_path, **{"train.py": source, "helper.py": "import yaml\n", "bad.py": "import ("})
    assert dict(wanted.imported) == {
        "torch": "train.py",
        "opencv-python": "train.py",
        "pillow": "train.py",
        "pyyaml": "helper.py",
    }
    assert wanted.unknown == ("strangelib",)


def test_of_a_project_that_says_what_it_needs_only_torchs_family_is_added(tmp_path: Path) -> None:
    wanted = project(tmp_path, **{"train.py": "import torchvision, yaml, torch\n", "requirements.txt": "torch\n"})
    assert wanted.imported == (("torchvision", "train.py"),)


def test_a_notebook_imports_too(tmp_path: Path) -> None:
    cell = '{"cells": [{"cell_type": "code", "source": ["%matplotlib inline\\n", "!pip list\\n", "import torch"]}]}'
    assert project(tmp_path, **{"a.ipynb": cell}).imported == (("torch", "a.ipynb"),)


def test_what_has_to_be_compiled(tmp_path: Path) -> None:
    wanted = project(
        tmp_path,
        **{
            "ops__setup.py": "from torch.utils.cpp_extension import CUDAExtension\n",
            "ops__src__a.cu": "",
            "kernels__b.cu": "",
            "plain__setup.py": "from setuptools import setup\n",
        },
    )
    assert wanted.builds == ("kernels", "ops")

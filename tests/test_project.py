"""The user's project: where it begins, which files come near a name, whether it expects a launcher."""

import json
import os
import textwrap
from pathlib import Path

import pytest

from torchport.project import expects_launcher, find_project, module_file, nearest_files, source_reader

HOME = Path("/home/somebody")


@pytest.mark.parametrize(
    ("files", "start", "folder", "expected"),
    [
        (["p/pyproject.toml", "p/src/train.py"], "p/src/train.py", ".", "p"),
        (["p/.git/HEAD", "p/a/requirements.txt", "p/a/train.py"], "p/a/train.py", "p", "p/a"),
        (["p/src/train.py"], "p/src/train.py", "p", "p"),
        (["p/src/train.py", "q/x"], "p/src/train.py", "q", "p/src"),
        (["p/train.py"], "p", "p", "p"),
    ],
)
def test_find_project(tmp_path, files, start, folder, expected):
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_project(tmp_path / start, tmp_path / folder, HOME).root == tmp_path / expected


def test_a_home_folder_is_no_project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "code").mkdir()
    script = tmp_path / "code" / "train.py"
    script.touch()
    assert find_project(script, tmp_path, home=tmp_path).root == tmp_path / "code"


def test_nearest_files(tmp_path):
    for name in ("train.py", "src/trainer.py", "notes.txt", ".venv/train.py", "model.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    near = nearest_files(tmp_path / "trian.py", tmp_path)
    assert near[0] == str(tmp_path / "train.py")
    assert str(tmp_path / ".venv/train.py") not in near
    assert nearest_files(tmp_path / "xyzzy.py", tmp_path) == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import os\nrank = int(os.environ["RANK"])\n', True),
        ('import os\nddp = int(os.environ.get("RANK", -1)) != -1\n', True),
        ('from os import environ, getenv\nrank = getenv("LOCAL_RANK")\n', True),
        ('import os\nif "WORLD_SIZE" in os.environ:\n    pass\n', True),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')\n", True),
        ("import torch.distributed as dist\ndist.init_process_group('nccl', rank=0, world_size=2)\n", False),
        (
            "import os, torch.multiprocessing as mp\n"
            'def work(rank):\n    os.environ["RANK"] = str(rank)\n    init_process_group("nccl")\n'
            "mp.spawn(work, nprocs=2)\n",
            False,
        ),
        ("import torch\nmodel = torch.nn.DataParallel(model)\n", False),
        ("RANK = 3\nprint('RANK')\n", False),
        ("def broken(:\n", False),
    ],
)
def test_expects_launcher(tmp_path, source, expected):
    script = tmp_path / "train.py"
    script.write_text(source)
    assert expects_launcher(script, tmp_path) is expected


def test_expects_launcher_looks_through_imports(tmp_path):
    files = {
        "train.py": "from tools.setup import join\njoin()\n",
        "tools/__init__.py": "",
        "tools/setup.py": "from . import ranks\nimport broken\ndef join():\n    ranks.me()\n",
        "tools/ranks.py": "import os\ndef me():\n    return os.environ['LOCAL_RANK']\n",
        "broken.py": "def (:\n",
        "unused.py": "import torch.multiprocessing as mp\nmp.spawn(f)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    assert expects_launcher(tmp_path / "train.py", tmp_path)


def test_module_file(tmp_path):
    (tmp_path / "pkg" / "tool").mkdir(parents=True)
    (tmp_path / "pkg" / "train.py").touch()
    (tmp_path / "pkg" / "tool" / "__main__.py").touch()
    assert module_file("pkg.train", tmp_path) == tmp_path / "pkg" / "train.py"
    assert module_file("pkg.tool", tmp_path) == tmp_path / "pkg" / "tool" / "__main__.py"
    assert module_file("http.server", tmp_path) is None


def test_only_sources_of_the_project_are_read(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    (root / "latin.py").write_bytes(b"# caf\xe9\n")
    (root / "long.py").write_bytes(b"#" * 600_000)
    (tmp_path / "secret.py").write_text("password")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(root / "pipe.py")
    read = source_reader(root)
    assert read("a.py") == "x = 1\n"
    assert read("latin.py") == "# caf\ufffd\n"
    outside = (
        "link.py",
        "../secret.py",
        str(tmp_path / "secret.py"),
        "/etc/passwd",
        "../secret.ipynb cell [1]",
    )
    for path in (*outside, "long.py", "pipe.py", ".", "no.py", "nul\0.py", "x" * 5000, "half\udce9.py", ""):
        assert read(path) is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("demo.ipynb cell [1]", "import torch\nx = 1"),
        ("demo.ipynb cell [2]", "y = 2"),
        ("demo.ipynb cell [3]", None),
        ("demo.ipynb cell [0]", None),
        ("old.ipynb cell [1]", "z = 3"),
        ("broken.ipynb cell [1]", None),
        ("list.ipynb cell [1]", None),
        ("no.ipynb cell [1]", None),
    ],
)
def test_sources_of_notebook_cells(tmp_path, place, expected):
    cells = [
        {"cell_type": "markdown", "source": ["# title"]},
        {"cell_type": "code", "source": ["import torch\n", "x = 1"], "metadata": {}},
        {"cell_type": "code", "source": "  \n", "metadata": {}},
        {"cell_type": "code", "source": "no()", "metadata": {"tags": ["skip-execution"]}},
        {"cell_type": "code", "source": "y = 2"},
    ]
    (tmp_path / "demo.ipynb").write_text(json.dumps({"cells": cells}))
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["z = 3"]}]}]}
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    (tmp_path / "broken.ipynb").write_text("{")
    (tmp_path / "list.ipynb").write_text("[[]]")
    assert source_reader(tmp_path)(place) == expected

"""The user's project: where it begins, which files come near a name, whether it expects a launcher."""

import textwrap
from pathlib import Path

import pytest

from torchport.project import expects_launcher, find_project, module_file, nearest_files

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

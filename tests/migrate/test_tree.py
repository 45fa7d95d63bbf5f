"""The working copy: what is a source, what is a link, and that only what was changed differs in a file."""

import json
import shutil
import subprocess

import pytest

from torchport.check.rule import Change
from torchport.migrate.cells import joined
from torchport.migrate.device import give_device, mentions_device
from torchport.migrate.tree import copy
from torchport.record import Observation, Site

NOTEBOOK = """{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["# A title\\n", "import nothing"]},
  {
   "cell_type": "code", "execution_count": 7, "metadata": {"id": "x"},
   "outputs": [{"output_type": "stream", "name": "stdout", "text": ["a = 1\\n"]}],
   "source": [
    "%matplotlib inline\\n",
    "import torch\\n",
    "import torch.nn as nn"
   ]
  },
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": []},
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
   "source": "%%time\\nmodel = nn.Linear(2, 2)  # \\u00e4"},
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
   "source": ["!ls\\n", "import math\\n", "out = model(torch.ones(2))\\n", "out.sum().backward()"]}
 ],
 "metadata": {"kernelspec": {"language": "python", "name": "python3"}}, "nbformat": 4, "nbformat_minor": 5
}"""


@pytest.fixture
def tree(tmp_path):
    def make(files, entry=""):
        root, folder = tmp_path / "project", tmp_path / "copy"
        folder.mkdir()
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data if isinstance(data, bytes) else data.encode())
        return copy(root, folder, entry)

    return make


def end(source, text) -> Change:
    at = source.text.index(text) + len(text)
    return at, at, " + 1"


def git_apply(project):
    """The patch of a tree on the user's own files, as its command is printed."""
    (project.root / "torchport.patch").write_bytes(project.patch().encode("utf-8", "surrogateescape"))
    subprocess.run(["git", "apply", "-p0", "torchport.patch"], cwd=project.root, check=True)


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@needs_git
def test_a_notebook_keeps_all_but_the_lines_that_changed(tree):
    path = "my notes.ipynb"
    project = tree({path: NOTEBOOK, "other.ipynb": NOTEBOOK}, path)
    assert project.paths() == [path]
    assert give_device(project, path)
    now = (project.folder / path).read_text()
    before = NOTEBOOK.splitlines()
    assert [line for line in before if line not in now.splitlines()] == [
        '    "import torch.nn as nn"',
        '   "source": "%%time\\nmodel = nn.Linear(2, 2)  # \\u00e4"},',
    ]
    cells = ["".join(cell["source"]) for cell in json.loads(now)["cells"]]
    assert cells[1].startswith("%matplotlib inline\nimport os\n\nimport torch\n")
    assert 'device = torch.device(os.environ.get("DEVICE")' in cells[1]
    assert cells[3] == "%%time\nmodel = nn.Linear(2, 2).to(device)  # ä"
    assert cells[4] == "".join(json.loads(NOTEBOOK)["cells"][4]["source"])
    git_apply(project)
    assert (project.root / path).read_text() == now
    assert (project.root / "other.ipynb").read_text() == NOTEBOOK


def test_a_place_in_a_cell_is_a_line_of_the_notebook(tree):
    project = tree({"a/train.ipynb": NOTEBOOK}, "a/train.ipynb")

    def line(path, number):
        seen = Observation(1, "R101", "error", Site(path, number), {"tensors": [{"born": Site(path, number)}]}, 0)
        found = joined(seen, project)
        assert found.fields["tensors"][0]["born"] == found.site
        source = project.read(found.site.path)
        return source and source.text.split("\n")[found.site.line - 1]

    assert line("a/train.ipynb cell [1]", 2) == "import torch"
    assert line("a/train.ipynb cell [2]", 2).startswith("model = nn.Linear")
    assert line("a/train.ipynb cell [3]", 3) == "out = model(torch.ones(2))"
    assert line("elsewhere/train.ipynb cell [3]", 3) == "out = model(torch.ones(2))"  # after os.chdir
    assert line("a/train.ipynb cell [9]", 1) is None
    assert line("b.ipynb cell [1]", 1) is None


FILES = {
    "crlf.py": b"x = 1\r\ny = 2\r\n",
    "latin.py": b"# -*- coding: latin-1 -*-\nx = 1  # \xe4\ny = '\xf6'\n",
    "bom.py": b"\xef\xbb\xbfx = 1\ny = 2\n",
    "no end.py": b"y = 2\nx = 1",
    "\xfcber.py": b"x = 1\n",
    "empty.py": b"",
    "torn.py": b"x = (",
    "broken.py": b"x = 1  # \xff\n",
}


@needs_git
@pytest.mark.parametrize("path", ["crlf.py", "latin.py", "bom.py", "no end.py", "\xfcber.py"])
def test_bytes_that_are_not_changed_stay(tree, path):
    project = tree(FILES)
    assert project.change(path, [end(project.read(path), "x = 1")])
    now = FILES[path].replace(b"x = 1", b"x = 1 + 1")
    assert project.changed() == {path: now}
    git_apply(project)
    assert (project.root / path).read_bytes() == now


@pytest.mark.parametrize("path", ["torn.py", "broken.py", "absent.py"])
def test_what_cannot_be_read_is_no_source(tree, path):
    project = tree(FILES)
    assert project.read(path) is None
    assert not project.change(path, [(0, 0, "y = 1\n")])
    assert project.changed() == {}


def test_nothing_outside_of_the_copy_is_changed(tree, tmp_path):
    """A run names places in other folders by their whole path."""
    (tmp_path / "library.py").write_text("x = 1\n")
    project = tree({"train.py": "x = 1\n"})
    for path in (str(tmp_path / "library.py"), "../library.py"):
        assert project.read(path) is None
        assert not project.change(path, [(0, 0, "y = 1\n")])
    assert (tmp_path / "library.py").read_text() == "x = 1\n"


def test_links(tree, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/lib.py").write_text("x = 1\n")
    (tmp_path / "project/src").mkdir(parents=True)
    (tmp_path / "project/train.py").symlink_to("src/train.py")
    (tmp_path / "project/alias").symlink_to("src")
    (tmp_path / "project/lib.py").symlink_to("../shared/lib.py")
    (tmp_path / "project/data").symlink_to(tmp_path / "shared")
    (tmp_path / "project/nowhere").symlink_to("gone")
    project = tree({"src/train.py": "x = 1\n"})
    folder = project.folder
    assert project.paths() == ["src/train.py"]
    assert (folder / "train.py").is_symlink() and (folder / "train.py").resolve() == folder / "src/train.py"
    assert (folder / "alias").resolve() == folder / "src"
    assert (folder / "data").resolve() == tmp_path / "shared"
    # A file that others share is there to be run, and not ours to change.
    assert not (folder / "lib.py").is_symlink() and (folder / "lib.py").read_text() == "x = 1\n"


def test_a_copy_within_the_project(tmp_path):
    """A script in the folder for temporary files: its project is all of that."""
    (tmp_path / "train.py").write_text("x = 1\n")
    folder = tmp_path / "temporary" / "project"
    folder.mkdir(parents=True)
    assert copy(tmp_path, folder).paths() == ["train.py"]
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["train.py"]


def test_a_program_without_a_suffix_is_a_source(tree):
    assert tree({"bin/train": "x = 1\n", "notes": "-"}, "bin/train").paths() == ["bin/train"]


MODEL = "import torch\nmodel = torch.nn.Linear(2, 2)\n"


@pytest.mark.parametrize(
    ("files", "mentions"),
    [
        ({"train.py": MODEL}, False),
        ({"train.py": MODEL, "other.py": "model.cuda()\n"}, False),
        ({"train.py": "import other\n" + MODEL, "other.py": "model.cuda()\n"}, True),
        ({"train.py": "from pkg import a\n" + MODEL, "pkg/a.py": "from . import b\n", "pkg/b.py": "m.cuda()"}, True),
        ({"train.py": "# model.cuda()\n" + MODEL}, False),
        ({"train.py": "import torch\nif torch.cuda.is_available(): pass\n"}, True),
    ],
)
def test_who_has_a_device(tree, files, mentions):
    """The program and what it imports; another program of the same folder says nothing of it."""
    assert mentions_device(tree(files), "train.py") is mentions


def test_the_device_comes_before_the_first_model(tree):
    project = tree({"train.py": MODEL + "import matplotlib\n"})
    assert give_device(project, "train.py")
    lines = project.read("train.py").text.splitlines()
    places = {line.split(" = ")[0]: number for number, line in enumerate(lines)}
    assert places["device"] < places["model"] < places["import matplotlib"]


def test_the_device_of_a_rank(tree):
    """Ranks that a launcher starts get one GPU each."""
    text = MODEL + "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
    project = tree({"train.py": text})
    assert give_device(project, "train.py")
    assert "LOCAL_RANK" in project.patch()

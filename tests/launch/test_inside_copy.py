"""The private folder holds what runs inside the user's process, and nothing else."""

import os
import subprocess
import sys
import time

from torchport.launch.inside_copy import private_folder


def test_only_what_runs_inside(tmp_path):
    folder = private_folder({"XDG_CACHE_HOME": str(tmp_path / "cache")}, tmp_path / "run")
    assert folder.parent == tmp_path / "cache" / "torchport" / "inside"
    assert {path.name for path in folder.iterdir()} == {"start.py", "torchport"}
    parts = {path.name for path in (folder / "torchport").iterdir()}
    assert parts == {"__init__.py", "record.py", "inside", "hardware"}
    assert not list(folder.rglob("__pycache__"))


def test_made_once(tmp_path):
    environ = {"HOME": str(tmp_path)}
    first = private_folder(environ, tmp_path / "run")
    stamp = (first / "start.py").stat().st_mtime_ns
    assert private_folder(environ, tmp_path / "run") == first
    assert (first / "start.py").stat().st_mtime_ns == stamp
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_what_was_not_used_for_long_is_removed(tmp_path):
    cache = tmp_path / ".cache" / "torchport" / "inside"
    month_ago = time.time() - 40 * 24 * 3600
    for name, used in (("importlib_bootstrap-old", month_ago), (".new-x", month_ago), ("importlib_bootstrap-1", None)):
        (cache / name / "torchport").mkdir(parents=True)
        os.utime(cache / name, used and (used, used))
    made = private_folder({"HOME": str(tmp_path)}, tmp_path / "run")
    assert {path.name for path in cache.iterdir()} == {made.name, "importlib_bootstrap-1"}


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "cache").write_text("")
    folder = private_folder({"XDG_CACHE_HOME": str(tmp_path / "cache")}, tmp_path / "run")
    assert folder.is_relative_to(tmp_path / "run")


def test_the_record_is_read_and_written_without_the_rest(tmp_path):
    folder = private_folder({"HOME": str(tmp_path)}, tmp_path / "run")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import torchport.record, torchport.hardware.gpus as gpus; print(gpus.__file__)"
    )
    output = subprocess.check_output([sys.executable, "-I", "-c", code, str(folder)], text=True)
    assert output.startswith(str(folder))

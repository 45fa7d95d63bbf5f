"""The run folder: where it is made, that git does not see it, how a run is found again."""

import os

import pytest

from torchport.launch.run_folder import RunMissing, find_run, new_run_folder, state, write_json

STARTED = 1_790_000_000.0


def test_a_folder_a_run(tmp_path):
    first = new_run_folder(tmp_path, "train", STARTED)
    second = new_run_folder(tmp_path, "train", STARTED)
    assert first.parent == tmp_path / ".torchport" / "runs" == second.parent
    assert first.name.endswith("-train") and second.name == first.name + "-2"
    assert (first / "logs").is_dir()
    assert (tmp_path / ".torchport" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("name", "ending"),
    [("pkg.train", "-pkg.train"), ("my run/é", "-my-run-"), ("", "-run"), ("x" * 99, "-" + "x" * 60)],
)
def test_names_are_plain(tmp_path, name, ending):
    assert new_run_folder(tmp_path, name, STARTED).name.endswith(ending)


def test_a_file_in_the_way_of_the_folder(tmp_path):
    (tmp_path / ".torchport").write_text("")
    folder = new_run_folder(tmp_path, "train", STARTED)
    assert folder.is_dir() and not folder.is_relative_to(tmp_path)


def test_find_run(tmp_path):
    with pytest.raises(RunMissing):
        find_run("latest", tmp_path)
    older = new_run_folder(tmp_path, "train", STARTED)
    newer = new_run_folder(tmp_path, "train", STARTED + 3600)
    for folder in (older, newer):
        write_json(folder / "plan.json", {})
    os.utime(older / "plan.json", (STARTED, STARTED))
    assert find_run("latest", tmp_path) == newer
    assert find_run(older.name, tmp_path) == older
    assert find_run(str(older), tmp_path / "elsewhere") == older
    with pytest.raises(RunMissing, match="nonsense"):
        find_run("nonsense", tmp_path)


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "exit.json"
    write_json(path, {"code": 0})
    with pytest.raises(TypeError):
        write_json(path, {"code": object()})
    assert path.read_text() == '{\n  "code": 0\n}\n'
    write_json(tmp_path / "gone" / "exit.json", {})


def test_state_tells_this_boot():
    assert state(7, STARTED)["pid"] == 7

"""How a run stands: what its folder says, against what the system says of the processes that it names."""

import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from torchport.launch.run_folder import RunMissing, read_plan, state, write_json
from torchport.launch.standing import runs_of, same_process, standing
from torchport.launch.tree import MARK, marked
from torchport.plan import Plan, VirtualGpus

PLAN = Plan(("t.py", "a"), "script", "/py", "/p", "/p", env=(("A", "1"),), cards=(0, 2))
NOW = 1_790_000_100.0


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / ".torchport" / "runs" / "r"
    folder.mkdir(parents=True)
    write_json(folder / "plan.json", PLAN)
    return folder


@pytest.mark.parametrize("plan", [PLAN, Plan(("m",), "module", "/py", "/", "/", virtual=VirtualGpus("l4", steps=2))])
def test_a_plan_is_read_as_it_was_written(run, plan):
    write_json(run / "plan.json", plan)
    assert read_plan(run) == plan


@pytest.mark.parametrize("content", [{"argv": []}, {**asdict(PLAN), "of_a_newer_version": 1}])
def test_a_plan_of_another_version_is_refused(run, content):
    write_json(run / "plan.json", content)
    with pytest.raises(RunMissing, match=r"plan\.json"):
        read_plan(run)
    assert runs_of(run.parents[2], NOW) == []


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({}, "running"),
        ({"phase": "waiting"}, "waiting"),
        ({"supervisor_born": 1}, "lost"),  # another process with that number
        ({"supervisor": 2**22 + 1}, "lost"),
        ({"boot": "other"}, "lost"),
        ({"boot": "other", "host": "n7"}, "elsewhere"),
    ],
)
def test_phases(run, changes, phase):
    write_json(run / "state.json", {**state(os.getpid(), NOW - 100), **changes})
    found = standing(run, NOW)
    assert found.phase == phase
    assert found.seconds == (100.0 if phase in ("running", "waiting") else None)


def test_the_end_is_what_exit_json_says(run):
    write_json(run / "state.json", state(os.getpid(), NOW))
    write_json(run / "exit.json", {"code": 7, "reason": "error", "rank": 1, "seconds": 3.0})
    found = standing(run, NOW)
    assert (found.phase, found.code, found.reason, found.rank, found.seconds) == ("ended", 7, "error", 1, 3.0)
    assert not found.alive


def test_a_folder_without_a_state(run):
    assert standing(run, NOW).phase == "unknown"


def test_what_a_lost_run_has_left_behind(run):
    write_json(run / "state.json", {**state(2**22 + 1, NOW), "supervisor": 2**22 + 1})
    assert not standing(run, NOW).alive
    program = "print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, MARK: str(run)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as orphan:
        orphan.stdout.readline()
        found = standing(run, NOW)
        assert (found.phase, found.living, found.alive) == ("lost", (orphan.pid,), True)
        orphan.kill()
        orphan.wait()
    assert marked(run) == []


def test_a_zombie_does_not_live():
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not same_process(child.pid, None)
    child.wait()

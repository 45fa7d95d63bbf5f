"""The rehearse engine renders processes: command lines, variables and the file each is started with."""

import json
from pathlib import Path

import pytest

from torchport.launch.engines.rehearse import Rehearse
from torchport.plan import Plan, VirtualGpus

ENGINE = Rehearse(private="/cache/abc", port=4321, run_id="run-1")


def plan(**changes):
    whole = {
        "argv": ("train.py", "--lr", "1"),
        "kind": "script",
        "python": "/usr/bin/python3",
        "folder": "/p",
        "project": "/p",
        "virtual": VirtualGpus("l4", steps=5),
        **changes,
    }
    return Plan(**whole)


def test_one_process_shares_the_terminal():
    (process,) = ENGINE.processes(plan(), Path("/run"), {})
    assert process.argv == ("/usr/bin/python3", "/cache/abc/start.py", "/run/spec-rank0.json")
    assert (process.log_path, process.record_path, process.env) == (None, "/run/record.jsonl", ())
    assert json.loads(process.spec) == {
        "argv": ["train.py", "--lr", "1"],
        "kind": "script",
        "record": "/run/record.jsonl",
        "gpus": 1,
        "gpu": "l4",
        "strict": False,
        "backing": "cpu",
        "plain": False,
        "seed": None,
        "steps": 5,
        "project": "/p",
        "rank": 0,
        "world": 1,
    }


def test_ranks_get_what_torchrun_sets():
    processes = ENGINE.processes(plan(processes=2, gpus_per_node=2, launcher=True), Path("/run"), {})
    assert [process.log_path for process in processes] == [None, "/run/logs/rank1.log"]
    assert processes[1].record_path == "/run/record-rank1.jsonl"
    variables = dict(processes[1].env)
    assert variables == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "ROLE_RANK": "1",
        "GROUP_RANK": "0",
        "ROLE_NAME": "default",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "ROLE_WORLD_SIZE": "2",
        "GROUP_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "4321",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "run-1",
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        "OMP_NUM_THREADS": "1",
    }


@pytest.mark.parametrize(
    ("changes", "environ", "name", "expected"),
    [
        ({"processes": 2}, {"OMP_NUM_THREADS": "3"}, "OMP_NUM_THREADS", None),
        ({"processes": 1}, {}, "OMP_NUM_THREADS", None),
        ({"processes": 1, "master_port": 29501}, {}, "MASTER_PORT", "29501"),
        ({"env": (("CUDA_VISIBLE_DEVICES", ""),)}, {}, "CUDA_VISIBLE_DEVICES", ""),
    ],
)
def test_variables(changes, environ, name, expected):
    process = ENGINE.processes(plan(launcher=True, **changes), Path("/run"), environ)[0]
    assert dict(process.env).get(name) == expected


def test_the_old_launcher_gives_the_rank_as_an_option():
    changes = {"processes": 2, "launcher": True, "local_rank_option": True}
    second = ENGINE.processes(plan(**changes), Path("/run"), {})[1]
    assert json.loads(second.spec)["argv"] == ["train.py", "--local-rank=1", "--lr", "1"]

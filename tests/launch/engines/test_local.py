"""The local engine renders the processes of a plan: command lines and variables, golden."""

import shlex
from pathlib import Path

import pytest

from torchport.launch.engines.local import INTO_ITS_LOG, Local
from torchport.plan import Plan

RUN = Path("/p/.torchport/runs/r")
NEWEST = ("nnodes", "shutdown-timeout", "signals-to-handle")
TORCHRUN = ("/py", "-m", "torch.distributed.run")
RANK = (*TORCHRUN, "sh", "-c", INTO_ITS_LOG, "rank")


def plan(*argv, **changes):
    return Plan(**{"argv": argv, "kind": "script", "python": "/py", "folder": "/p", "project": "/p", **changes})


@pytest.mark.parametrize(
    ("plan", "argv"),
    [
        (plan("train.py", "a b", "it's", "$HOME", ""), ("/py", "train.py", "a b", "it's", "$HOME", "")),
        (plan("pkg.train", "--x", kind="module"), ("/py", "-m", "pkg.train", "--x")),
        (plan("python", "-c", "1", kind="command"), ("/py", "-c", "1")),
        (
            plan("torchrun", "--nproc-per-node", "2", "t.py", kind="command"),
            (*TORCHRUN, "--nproc-per-node", "2", "t.py"),
        ),
        (plan("/env/bin/jupyter", "lab", kind="command"), ("/env/bin/jupyter", "lab")),
        (plan("t.py", "a b", launcher=True, processes=2), (*RANK, "/py", "t.py", "a b")),
        (plan("pkg.t", kind="module", launcher=True, processes=2), (*RANK, "/py", "-m", "pkg.t")),
    ],
)
def test_command_lines(plan, argv):
    assert Local(True).argv(plan) == argv
    assert tuple(shlex.split(shlex.join(argv))) == argv


@pytest.mark.parametrize(
    ("changes", "options", "environ", "expected"),
    [
        ({}, NEWEST, {}, {"PYTHONUNBUFFERED": "1"}),
        ({"env": (("A", "1"),)}, NEWEST, {"PYTHONUNBUFFERED": ""}, {"A": "1"}),
        (
            {"launcher": True, "processes": 2, "max_restarts": 3, "grace_s": 90.0},
            NEWEST,
            {"PYTHONUNBUFFERED": "1"},
            {
                "PET_STANDALONE": "1",
                "PET_NNODES": "1",
                "PET_NPROC_PER_NODE": "2",
                "PET_MAX_RESTARTS": "3",
                "PET_NO_PYTHON": "1",
                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                "PET_SHUTDOWN_TIMEOUT": "90",
                "PET_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGQUIT",
                "OMP_NUM_THREADS": "1",
            },
        ),
        (  # torch 2.9 and older
            {"launcher": True},
            ("nnodes",),
            {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "4"},
            {
                "PET_STANDALONE": "1",
                "PET_NNODES": "1",
                "PET_NPROC_PER_NODE": "1",
                "PET_MAX_RESTARTS": "0",
                "PET_NO_PYTHON": "1",
            },
        ),
    ],
)
def test_variables(changes, options, environ, expected):
    variables = dict(Local(True, options).variables(plan("t.py", **changes), RUN, environ))
    assert variables == {"TORCHPORT_RUN": str(RUN), **expected}


@pytest.mark.parametrize(
    ("attached", "launcher", "log"),
    [(True, False, None), (False, False, "rank0.log"), (True, True, "launcher.log"), (False, True, "launcher.log")],
)
def test_where_the_output_goes(attached, launcher, log):
    (process,) = Local(attached).processes(plan("t.py", launcher=launcher), RUN, {})
    assert process.log_path == (log and f"{RUN}/logs/{log}")
    assert (process.record_path, process.spec_path) == (f"{RUN}/record.jsonl", None)

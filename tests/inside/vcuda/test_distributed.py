"""Two ranks on two virtual cards: what they compute together, and what NCCL would refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from distributed_cases import CASES, WORLD

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def answers(tmp_path_factory):
    """What both ranks answered to all cases; one pair of processes for all."""
    folder = tmp_path_factory.mktemp("ranks")
    program = Path(__file__).with_name("distributed_cases.py")
    source = Path(__file__).parents[3] / "src"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(folder)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(WORLD)
    ]
    try:
        said = [rank.communicate(timeout=240)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdout.close()
    assert [rank.returncode for rank in ranks] == [0] * WORLD, said
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]


@pytest.mark.parametrize("name", CASES)
def test_ranks(name, answers):
    _, expected, *_ = CASES[name]
    for rank in range(WORLD):
        assert answers[rank][name] == expected[rank], answers[rank][name]


def test_undone():
    """Nothing is left of NCCL where there was none before."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    from torchport.inside.vcuda import virtual_cuda

    group = distributed_c10d.ProcessGroup
    before = [dist.is_nccl_available(), group.barrier, vars(group).get("_device_types"), torch._C.Future.then]
    with virtual_cuda():
        assert dist.is_nccl_available()
        assert distributed_c10d.ProcessGroupNCCL.Options().is_high_priority_stream is False
    after = [dist.is_nccl_available(), group.barrier, vars(group).get("_device_types"), torch._C.Future.then]
    assert [str(one) for one in after] == [str(one) for one in before]

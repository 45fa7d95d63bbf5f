"""Processes that a program starts itself: on virtual cards too, recorded, and told apart when they hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from torchport.inside.children import ChildRecord
from torchport.record import read

TRAIN = """
    import os, sys
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)

    def worker(rank, world):
        os.environ["MASTER_ADDR"] = "10.0.0.1"  # the head node of a cluster
        os.environ["MASTER_PORT"] = sys.argv[1]
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=world)
        model = DistributedDataParallel(nn.Linear(4, 4).cuda(), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 4).cuda()).sum().backward()
            optimizer.step()
            if step == 1:
                {then}
        dist.destroy_process_group()

    if __name__ == "__main__":
        mp.spawn(worker, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
"""
STEP, THEN = 19, 22  # the lines of backward and of what follows


@pytest.fixture
def rehearse(tmp_path, free_port):
    (tmp_path / "pyproject.toml").write_text("[tool.torchport]\n")

    def run(program, *words, gpus=2):
        (tmp_path / "train.py").write_text(textwrap.dedent(program).lstrip())
        command = [sys.executable, "-m", "torchport", "rehearse", "--python", sys.executable, "--format", "json"]
        done = subprocess.run(
            [*command, f"--gpus={gpus}", *words, "train.py", str(free_port)],
            cwd=tmp_path,
            env={**os.environ, "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        report = json.loads(done.stdout) if done.stdout.startswith("{") else None
        assert report is not None, done.stderr
        return done, report

    return run


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def records(tmp_path):
    def found():
        (folder,) = (tmp_path / ".torchport" / "runs").iterdir()
        return [read(path) for path in sorted(folder.glob("record-spawn-*.jsonl"))]

    return found


@pytest.mark.full
def test_spawned_ranks_are_recorded(rehearse, records):
    done, report = rehearse(TRAIN.format(then="pass"))
    assert done.returncode == 0, done.stderr
    children = sorted(records(), key=lambda record: record.rank)
    assert [(child.rank, child.header["world"], len(child.steps)) for child in children] == [(0, 2, 3), (1, 2, 3)]
    assert [child.exit["reason"] for child in children] == ["finished", "finished"]
    assert [child.peaks[0].gpu for child in children] == [0, 1]
    assert [finding["id"] for finding in report["findings"] if finding["severity"] != "info"] == []


# What rank 1 does after the second step, the exit code where it is certain, the finding, its line, and what is told.
ENDINGS = {
    "different collectives": (
        "dist.all_reduce(torch.ones(3).cuda()) if rank == 0 else dist.barrier()",
        5,
        "R401",
        THEN,
        [("all_reduce", ["[3]"]), ("barrier", [])],
    ),
    "different sizes": (
        "dist.all_reduce(torch.ones(3 + rank).cuda())",
        None,
        "R401",
        THEN,
        [("all_reduce", ["[3]"]), ("all_reduce", ["[4]"])],
    ),
    "the same size by other names": (
        "dist.broadcast(torch.ones(1).cuda(), 0) if rank else dist.all_reduce(torch.ones(1).cuda())",
        None,
        "R401",
        THEN,
        [("all_reduce", ["[1]"]), ("broadcast", ["[1]"])],
    ),
    "a rank that is done": ("if rank == 1: return", 4, "R402", STEP, 1),
    "a rank that dies": ("if rank == 1: os._exit(3)", 4, "R402", STEP, 1),
    "a rank that raises": ("assert rank == 0, 'bad batch'", 4, "R402", STEP, 1),
}


@pytest.mark.full
@pytest.mark.parametrize("name", ENDINGS)
def test_ranks_that_would_wait_for_ever(name, rehearse):
    then, code, id, line, told = ENDINGS[name]
    done, report = rehearse(TRAIN.format(then=then))
    assert code in (None, done.returncode), done.stderr
    (finding,) = [finding for finding in report["findings"] if finding["id"] == id]
    assert (finding["location"]["path"], finding["location"]["line"]) == ("train.py", line)
    (fields,) = finding["fields"]
    assert fields["last_common"]["site"]["line"] == STEP
    if id == "R401":
        assert [(row["op"], row["shapes"]) for row in fields["ranks"]] == told
    else:
        assert fields["rank"] == told


LOADER = """
    import sys
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    class Data(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.full((2,), float(index)).cuda()

    if __name__ == "__main__":
        torch.zeros(1).cuda()
        loader = DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context={context!r})
        print([(str(batch.device), batch.sum().item()) for batch in loader], file=sys.stderr)
"""


@pytest.mark.full
@pytest.mark.parametrize(("context", "ids"), [("fork", ["R107"]), ("spawn", []), ("forkserver", [])])
def test_workers_that_use_the_card(context, ids, rehearse):
    done, report = rehearse(LOADER.format(context=context), gpus=1)
    assert "[('cuda:0', 2.0), ('cuda:0', 10.0)]" in done.stderr
    assert [finding["id"] for finding in report["findings"] if finding["severity"] == "error"] == ids


@pytest.mark.full
def test_strict_workers_stop_as_on_cuda(rehearse):
    done, report = rehearse(LOADER.format(context="fork"), "--strict", gpus=1)
    assert done.returncode == 4
    assert "Caught RuntimeError in DataLoader worker process 0." in done.stderr
    assert "Cannot re-initialize CUDA in forked subprocess." in done.stderr
    assert [finding["id"] for finding in report["findings"] if finding["severity"] == "error"] == ["R107"]


FORKED = """
    import sys
    import torch
    import multiprocessing

    torch.set_num_threads(1)

    def work(mean):
        weight = torch.zeros(2, requires_grad=True, device="cuda")
        optimizer = torch.optim.SGD([weight], 0.1)
        (weight - mean).pow(2).sum().backward()
        optimizer.step()

    if __name__ == "__main__":
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=work, args=(mean,)) for mean in (1.0, 2.0)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        sys.exit(max(child.exitcode for child in children))
"""


@pytest.mark.full
def test_forked_children_have_records_of_their_own(rehearse, records):
    done, _ = rehearse(FORKED)
    assert done.returncode == 0, done.stderr
    assert sorted(record.losses[0].value for record in records()) == [2.0, 8.0]
    assert [len(record.steps) for record in records()] == [1, 1]


EXCHANGE = """
    import sys
    import torch
    import torch.multiprocessing as mp

    def other(inbox, outbox):
        tensor = inbox.get()
        where = str(tensor.device)
        tensor.add_(1)
        outbox.put((where, torch.ones(2, device="cuda"), torch.nn.Parameter(torch.ones(1).cuda(1))))
        inbox.get()

    if __name__ == "__main__":
        context = mp.get_context("spawn")
        there, back = context.Queue(), context.Queue()
        child = context.Process(target=other, args=(there, back))
        child.start()
        tensor = torch.zeros(3).cuda(1)
        there.put(tensor)
        where, plain, parameter = back.get()
        print([where, str(plain.device), str(parameter.device), tensor.tolist()], file=sys.stderr)
        there.put(None)
        child.join()
"""


@pytest.mark.full
def test_tensors_arrive_on_their_card(rehearse):
    done, _ = rehearse(EXCHANGE)
    assert "['cuda:1', 'cuda:0', 'cuda:1', [1.0, 1.0, 1.0]]" in done.stderr


def events(*kinds):
    return [{"kind": kind, "code": 0, "error": None} for kind in kinds]


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ([], False),
        (events("totals", "exit"), False),
        (events("loss"), True),
        ([{"kind": "exit", "code": 1, "error": {"type": "ValueError"}}], True),
    ],
    ids=["nothing", "an end without anything", "a loss", "an error"],
)
def test_a_child_that_tells_nothing_leaves_no_record(told, left, tmp_path):
    (tmp_path / "record-spawn-1.jsonl").write_text("another's\n")
    record = ChildRecord(str(tmp_path), {"rank": 0, "world": 1})
    for event in told:
        record.write(event)
    record.flush()
    record.close()
    made = tmp_path / "record-spawn-2.jsonl"
    assert made.exists() is left
    if left:
        lines = [json.loads(line) for line in made.read_text().splitlines()]
        assert [line["kind"] for line in lines] == ["header", *[event["kind"] for event in told]]

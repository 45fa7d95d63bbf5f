"""Preflight: one problem, one sentence, and silence where nothing is wrong."""

import socket

import pytest

from torchport.facts import Card, DriverFacts, Facts, TorchFacts
from torchport.launch.preflight import Needs, problems, supports
from torchport.plan import Plan

H200 = Card(0, "GPU-0", "H200", capability=(9, 0))


def facts(cuda="12.8", driver=(12, 8), card=H200):
    return Facts(torch=TorchFacts("/py", (3, 11, 0), "2.9.0", cuda), driver=DriverFacts("570.1", driver), cards=(card,))


def found(tmp_path, *argv, facts=Facts(), wanted=0, **needs):  # noqa: B008
    plan = Plan(("t.py", *argv), "script", "/py", str(tmp_path), str(tmp_path))
    return [problem.text for problem in problems(plan, facts, Needs(**needs), wanted, shm=tmp_path)]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (facts(), None),
        (facts(cuda="12.9"), None),  # the minor version may be newer than the driver's
        (facts(cuda=None), "built without CUDA"),
        (facts(cuda="13.0"), "driver 570.1 runs CUDA 12.8 at most"),
        (facts(cuda="12.6", card=Card(0, "u", "B200", capability=(10, 0))), "no code for B200"),
        (facts(cuda="13.0", driver=(13, 0), card=Card(0, "u", "V100", capability=(7, 0))), "no code for V100"),
    ],
)
def test_torch_and_the_card(tmp_path, facts, words):
    told = found(tmp_path, facts=facts, wanted=1)
    assert [words in text for text in told] == ([] if words is None else [True])
    assert found(tmp_path, facts=facts) == []


@pytest.mark.parametrize(
    ("cuda", "capability", "expected"),
    [((12, 6), (9, 0), True), ((12, 8), (12, 0), True), ((12, 6), (12, 0), False), ((13, 0), (7, 5), True)],
)
def test_code_for_a_card(cuda, capability, expected):
    assert supports(cuda, capability) is expected


@pytest.mark.parametrize(
    ("argv", "count"),
    [
        (("--data", "/nope"), 1),
        (("--train-data=./nope",), 1),
        (("--data", "."), 0),
        (("--dataset", "org/name"), 0),
        (("--dataset", "cifar10"), 0),
        (("--out", "/nope"), 0),
        (("--data",), 0),
    ],
)
def test_data(tmp_path, argv, count):
    assert len(found(tmp_path, *argv)) == count


def test_data_of_the_configuration(tmp_path):
    (tmp_path / "there").mkdir()
    assert len(found(tmp_path, data=("there", "nope"))) == 1


def test_ports(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert [str(port) in text for text in found(tmp_path, ports=(port,))] == [True]
    assert found(tmp_path, ports=(port,)) == []


@pytest.mark.parametrize(
    ("argv", "source", "count"),
    [((), "", 0), (("--workers", "4"), "", 1), (("-j=2",), "", 1), (("--workers", "0"), "", 0),
     ((), "DataLoader(d, num_workers=3)", 1), ((), "def (", 0)],
)  # fmt: skip
def test_shared_memory(tmp_path, monkeypatch, argv, source, count):
    import os

    real = os.statvfs(tmp_path)

    class Small:
        f_frsize, f_blocks, f_bavail, f_bfree = 4096, 16384, 1 << 30, 1 << 30

    monkeypatch.setattr(os, "statvfs", lambda path: Small if path == tmp_path else real)
    (tmp_path / "t.py").write_text(source)
    assert len(found(tmp_path, *argv, entry=tmp_path / "t.py")) == count


def test_a_full_disk(tmp_path, monkeypatch):
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 99, 1))
    plan = Plan(("t.py",), "script", "/py", str(tmp_path), str(tmp_path))
    (problem,) = problems(plan, Facts(), Needs(), 0)
    assert problem.stops and "1 B are free" in problem.text

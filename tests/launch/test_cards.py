"""Cards that several people share: which are free, who has the others, and that two runs never get the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchport.facts import Card, DriverFacts, Holder
from torchport.launch import cards
from torchport.launch.cards import CardsBusy, CardsUnknown, allowed, choose, peek, read, take, why_busy

GIB = 1 << 30


def card(index, **changes):
    return Card(
        **{"index": index, "uuid": f"GPU-{index}{index}", "name": "T", "used_bytes": 0, "holders": (), **changes}
    )


BUSY = {"holders": (Holder(77, GIB, "ann", "python train.py"),)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"used_bytes": None, "holders": None}, None),  # a card that shares the host's memory
        ({"used_bytes": 100 << 20}, None),
        (BUSY, "pid 77, ann, python train.py"),
        ({"holders": (Holder(77),)}, "pid 77"),
        ({"used_bytes": GIB}, "cannot be seen from here"),
        ({"mig": True}, "MIG"),
        ({"prohibited": True}, "prohibited"),
    ],
)
def test_why_a_card_is_busy(changes, words):
    reason = why_busy(card(0, **changes))
    assert reason is None if words is None else words in reason


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, (0, 1, 2)),
        ("2,0", (2, 0)),
        ("GPU-11", (1,)),
        ("", ()),
        ("1,9,2", (1,)),
        ("-1", ()),
        ("GPU", ()),
    ],
)
def test_cards_that_the_user_leaves(visible, indices):
    assert tuple(one.index for one in allowed([card(0), card(1), card(2)], visible)) == indices


@pytest.mark.parametrize(
    ("count", "share", "indices"),
    [(1, False, (0,)), (2, False, (0, 2)), (3, True, (0, 1, 2)), (3, False, None), (4, True, None)],
)
def test_free_cards_come_first(count, share, indices):
    there = [card(0, used_bytes=1 << 20), card(1, **BUSY), card(2, used_bytes=2 << 20), card(3, mig=True)]
    if indices is None:
        with pytest.raises(CardsBusy) as caught:
            choose(there, count, share=share)
        assert set(caught.value.held) == {1, 3}
    else:
        assert choose(there, count, share=share) == indices


def test_two_runs_never_get_the_same_card(tmp_path):
    there = [card(0), card(1), card(2)]
    first = take(there, 2, run="/runs/a", folder=tmp_path)
    assert first.indices == (0, 1)
    assert [len(one.holders) for one in peek(there, tmp_path)] == [1, 1, 0]
    assert take(there, 1, run="/runs/b", folder=tmp_path).indices == (2,)
    with pytest.raises(CardsBusy) as caught:
        take(there, 1, run="/runs/c", folder=tmp_path)
    assert caught.value.held[0].endswith(", /runs/a") and "pid" not in caught.value.held[0]
    assert take(there, 1, run="/runs/d", share=True, folder=tmp_path).indices == (0,)


def test_the_lock_ends_with_the_last_process_that_has_it(tmp_path):
    (lock,) = take([card(0)], 1, run="/runs/a", folder=tmp_path).locks
    with subprocess.Popen([sys.executable, "-c", "input()"], pass_fds=[lock], stdin=subprocess.PIPE) as job:
        os.close(lock)
        with pytest.raises(CardsBusy):
            take([card(0)], 1, run="/runs/b", folder=tmp_path)
        job.kill()
        job.wait()
    assert take([card(0)], 1, run="/runs/b", folder=tmp_path).indices == (0,)


def test_a_trap_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "locks").symlink_to("there")
    with pytest.raises(CardsUnknown, match="not a folder"):
        take([card(0)], 1, run="/runs/a", folder=tmp_path / "locks")


def test_what_the_driver_tells(tmp_path):
    process = tmp_path / "77"
    process.mkdir()
    (process / "cmdline").write_bytes(b"python\0train.py\0")
    row = {
        "index": 0,
        "uuid": "GPU-1",
        "name": "H200",
        "memory_bytes": 8 * GIB,
        "used_bytes": 3 * GIB,
        "capability": [9, 0],
        "mig": False,
        "prohibited": False,
        "holders": [[77, GIB], [78, None]],
        "shown": [[5, GIB]],
    }
    driver, (found,) = read({"cards": [row], "version": "570.1", "cuda": 12080, "error": None}, tmp_path)
    assert driver == DriverFacts("570.1", (12, 8))
    assert (found.used_bytes, found.capability) == (2 * GIB, (9, 0))
    assert [(one.pid, one.command) for one in found.holders] == [(77, "python train.py"), (78, None)]
    assert found.holders[0].user is not None and found.holders[1].user is None


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="has a card")
def test_a_machine_without_a_driver():
    program = Path(cards.__file__).with_name("nvml.py")
    answer = json.loads(subprocess.run([sys.executable, "-I", str(program)], capture_output=True, check=True).stdout)
    assert answer == {"cards": [], "version": None, "cuda": None, "error": None}

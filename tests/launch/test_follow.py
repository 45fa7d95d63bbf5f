"""A record is followed while it grows, line by whole line."""

import json

from torchport.launch.follow import Follower
from torchport.record import Site


def line(**event):
    return (json.dumps(event, separators=(",", ":")) + "\n").encode()


def collective(state, sequence=1, op="all_reduce"):
    return line(kind="collective", sequence=sequence, op=op, shapes=["[8]"], dtype="float32", site=4, state=state)


def test_follow(tmp_path):
    path = tmp_path / "record.jsonl"
    follower = Follower(str(path))
    follower.look(0.0)
    assert follower.waits_in() is None

    site = line(kind="site", id=4, path="train.py", line=30, function="step")
    enter = collective("enter")
    path.write_bytes(line(kind="header", schema=1) + site + enter[:20])
    follower.look(1.0)
    assert follower.waits_in() is None

    with path.open("ab") as file:
        file.write(enter[20:])
    follower.look(2.0)
    follower.look(3.0)
    call, since = follower.waits_in()
    assert (call.op, call.sequence, call.site, since) == ("all_reduce", 1, Site("train.py", 30, "step"), 2.0)

    with path.open("ab") as file:
        file.write(collective("enter", 2, "broadcast") + collective("leave", 1))
    follower.look(4.0)
    assert follower.waits_in()[0].op == "broadcast"
    assert [call.op for call in follower.passed] == ["all_reduce"]


def test_the_oldest_of_several_counts(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_bytes(collective("enter", 1) + collective("enter", 2, "broadcast"))
    follower = Follower(str(path))
    follower.look(0.0)
    assert follower.waits_in()[0].sequence == 1

"""What the supervisor saw is added to a record in whatever state the process left it."""

import json

import pytest

from torchport.launch.postscript import Seen, add
from torchport.record import Site, read

HEADER = {"version": "0.1.0", "rank": 0, "started": 1.0}


def lines(*events):
    return "".join(json.dumps(event) + "\n" for event in events)


BEGUN = lines(
    {"kind": "header", "schema": 1, **HEADER},
    {"kind": "site", "id": 3, "path": "a.py", "line": 1},
    {"kind": "finding", "number": 7, "id": "R101", "severity": "error", "site": 3, "fields": {}, "step": 0},
)


@pytest.mark.parametrize("text", [None, "", BEGUN, BEGUN + '{"kind":"ste', BEGUN[:30]], ids=str)
def test_add(tmp_path, text):
    path = tmp_path / "record.jsonl"
    if text is not None:
        path.write_text(text)
    place = Site("train.py", 9, "main")
    fields = {"rank": 1, "ranks": [{"rank": 0, "site": place}], "last_common": None}
    add(
        path,
        HEADER,
        [Seen("R402", "error", fields, place)],
        {"code": -15, "reason": "hung", "error": None, "seconds": 4},
    )
    record = read(path)
    assert not record.torn and record.exit is not None and record.exit["reason"] == "hung"
    assert record.findings[-1].id == "R402" and record.findings[-1].site == place
    assert record.findings[-1].fields["ranks"] == [{"rank": 0, "site": place}]
    assert len({finding.number for finding in record.findings}) == len(record.findings)


def test_how_the_process_ended_stands(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_text(BEGUN + lines({"kind": "exit", "code": 0, "reason": "finished", "error": None, "seconds": 1}))
    add(path, HEADER, [], {"code": -15, "reason": "timeout", "error": None, "seconds": 2})
    assert read(path).exit["reason"] == "finished"


def test_nothing_to_add_changes_nothing(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_text(BEGUN)
    add(path, HEADER, [])
    assert path.read_text() == BEGUN

"""The record: what is written is read again, whatever ended the writer."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

from torchport.record import SCHEMA, Record, RecordError, RecordWriter, Site, read

HEADER = f'{{"kind":"header","schema":{SCHEMA}}}\n'
STEP = {
    "kind": "step",
    "number": 1,
    "seconds": 0.5,
    "ops": 7,
    "syncs": 1,
    "h2d": [1, 8],
    "d2h": [0, 0],
    "d2d": [0, 0],
    "loader_s": 0.0,
    "allocated": [512],
    "peak": [1024],
}


def write(path, *events, **header):
    writer = RecordWriter(path, header)
    for event in events:
        writer.write(event)
    writer.close()
    return read(path)


def test_everything_that_is_written_is_read(tmp_path):
    record = write(
        tmp_path / "record.jsonl",
        {"kind": "site", "id": 1, "path": "model.py", "line": 41, "function": "forward"},
        {
            "kind": "finding",
            "number": 1,
            "id": "R101",
            "severity": "error",
            "site": 1,
            "step": 0,
            "fields": {},
        },
        {"kind": "loss", "step": 1, "value": (0.1).hex(), "site": 1},
        STEP,
        {"kind": "memory", "gpu": 0, "step": 1, "points": [[0, 512]]},
        {"kind": "peak", "gpu": 0, "bytes": 4, "step": 1, "holders": []},
        {"kind": "peak", "gpu": 0, "bytes": 9, "step": 2, "holders": [["buffer", "norm", 1, 9, 2]]},
        {"kind": "collective", "sequence": 1, "op": "all_reduce", "site": 1, "state": "enter"},
        {"kind": "totals", "operators": [["aten::mm", 1]], "findings": [[1, 2]]},
        {"kind": "totals", "operators": [["aten::mm", 3]], "findings": [[1, 5]], "syncs": [[1, "item", 2]]},
        {"kind": "exit", "code": 0, "reason": "finished", "error": None, "seconds": 1.5},
        rank=2,
    )
    site = Site("model.py", 41, "forward")
    assert str(site) == "model.py:41"
    assert (record.rank, record.torn) == (2, False)
    assert [(f.id, f.site, f.count) for f in record.findings] == [("R101", site, 5)]
    assert record.losses[0].value == 0.1
    assert (record.steps[0].h2d, record.steps[0].allocated) == ((1, 8), (512,))
    assert [(p.bytes, p.holders[0].site, p.holders[0].module) for p in record.peaks] == [(9, site, "norm")]
    assert record.collectives[0]["site"] == site
    assert record.operators == (("aten::mm", 3),)
    assert record.syncs == ((site, "item", 2),)
    assert record.exit is not None
    assert record.exit["code"] == 0


def test_places_inside_fields_become_sites(tmp_path):
    tensor = {"name": "mask", "born": {"site": 1}, "moved": None}
    fields = {"tensors": [tensor], "remedy": {"kind": "move", "site": {"site": 1}}}
    error = {"type": "ValueError", "message": "no", "site": 1}
    record = write(
        tmp_path / "r",
        {"kind": "site", "id": 1, "path": "a.py", "line": 3},
        {"kind": "finding", "number": 1, "id": "R101", "severity": "error", "site": None, "fields": fields},
        {"kind": "exit", "code": 1, "reason": "error", "error": error, "seconds": 0},
    )
    found = record.findings[0].fields
    assert found["tensors"][0] == {"name": "mask", "born": Site("a.py", 3), "moved": None}
    assert found["remedy"] == {"kind": "move", "site": Site("a.py", 3)}
    assert record.exit is not None
    assert record.exit["error"]["site"] == Site("a.py", 3)


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-310, 1 / 3, float("inf"), float("-inf"), float("nan")])
def test_losses_are_exact(tmp_path, value):
    read_again = write(tmp_path / "r", {"kind": "loss", "step": 1, "value": value.hex(), "site": None})
    (loss,) = read_again.losses
    assert math.isnan(loss.value) if math.isnan(value) else loss.value.hex() == value.hex()


@pytest.mark.parametrize(
    "path",
    [
        "模型/训练.py",
        "a b.py",
        'quo"te.py',
        "new\nline.py",
        "half\udce9.py",
        "sep\u2028arator.py",
        "nul\x00.py",
        "\r.py",
    ],
)
def test_any_file_name_comes_back(tmp_path, path):
    events = (
        {"kind": "site", "id": 1, "path": path, "line": 1},
        {"kind": "loss", "step": 1, "value": "0x0p+0", "site": 1},
    )
    assert write(tmp_path / "r", *events).losses[0].site == Site(path, 1)


@pytest.mark.parametrize(
    "torn",
    [
        b'{"kind":"st',
        b'{"kind":"step"',
        b"{",
        b'{"kind":"site","path":"\xe6\xa8',
        b"\x00\x00\x00",
        b'{"kind":"step"}\n{',
    ],
    ids=["text", "object", "brace", "character", "zeros", "line and brace"],
)
def test_a_torn_last_line_is_left_out(tmp_path, torn):
    path = tmp_path / "r"
    write(path, STEP)
    whole, _, rest = torn.rpartition(b"\n")
    with path.open("ab") as file:
        file.write(torn if not whole else json.dumps(STEP).encode() + b"\n" + rest)
    record = read(path)
    assert record.torn
    assert len(record.steps) == (2 if whole else 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "has no header line"),
        ("\n\n", "has no header line"),
        ("{}\n", "has no header line"),
        ("loss 0.5\nloss 0.4\n", "line 1 is not JSON"),
        ("[1]\n", "line 1 is not a JSON object"),
        ('{"kind":"header"}\n', "has no schema number"),
        ('{"kind":"header","schema":"1"}\n', "has no schema number"),
        (HEADER + "oops\n" + HEADER, "line 2 is not JSON"),
        (HEADER + '{"kind":"step","number":1}\n', "an event is not as schema 1 has it (KeyError: 'seconds')"),
        (HEADER + '{"kind":"loss","step":1,"value":"x","site":1}\n', "an event is not as schema 1 has it"),
        (HEADER + '{"kind":"totals","syncs":[1]}\n', "an event is not as schema 1 has it"),
        ('{"kind":"header","schema":99,"version":"7.1"}\n', "written by torchport 7.1 with record schema 99"),
    ],
)
def test_what_is_no_record_is_refused_by_name(tmp_path, content, expected):
    path = tmp_path / "some.jsonl"
    path.write_text(content)
    with pytest.raises(RecordError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert expected in str(caught.value)


def test_a_newer_schema_says_what_to_do(tmp_path):
    path = tmp_path / "r"
    path.write_text('{"kind":"header","schema":2}\n')
    with pytest.raises(RecordError, match="reads up to schema 1: upgrade torchport"):
        read(path)


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(RecordError, match="cannot be read"):
            read(path)


def test_kinds_and_keys_that_are_not_known_are_passed_over(tmp_path):
    record = write(tmp_path / "r", {"kind": "later", "x": 1}, {**STEP, "more": 1}, new=True)
    assert len(record.steps) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_ends_the_record_and_not_the_run(capfd):
    writer = RecordWriter("/dev/full", {})
    for _ in range(3):
        writer.write(STEP)
        writer.flush()
    writer.close()
    writer.close()
    said = capfd.readouterr().err.splitlines()
    assert said == ["torchport: the record stops here, /dev/full: No space left on device"]


@pytest.mark.full
def test_what_a_full_disk_took_is_readable(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        writer = RecordWriter(disk / "r", {})
        while writer.broken is None:
            writer.write(STEP)
            writer.flush()
        writer.close()
        record = read(disk / "r")
    finally:
        subprocess.run(["umount", disk], check=True)
    assert len(record.steps) > 100
    assert record.exit is None


_WRITE_FOR_EVER = """
import sys
from torchport.record import RecordWriter
writer = RecordWriter(sys.argv[1], {})
number = 0
while True:
    number += 1
    writer.write({**eval(sys.argv[2]), "number": number})
    writer.flush()
"""


def test_a_killed_writer_leaves_whole_lines(tmp_path):
    path = tmp_path / "r"
    child = subprocess.Popen([sys.executable, "-c", _WRITE_FOR_EVER, path, repr(STEP)])
    while not path.exists() or path.stat().st_size < 10_000:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    record = read(path)
    assert [step.number for step in record.steps] == list(range(1, len(record.steps) + 1))
    assert record.exit is None


_WRITE_AND_FORK = """
import os, sys
from torchport.record import RecordWriter
writer = RecordWriter(sys.argv[1], {})
writer.write(eval(sys.argv[2]))
if os.fork() == 0:
    writer.close()
    os._exit(0)
os.wait()
writer.close()
"""


def test_a_forked_child_writes_nothing(tmp_path):
    path = tmp_path / "r"
    subprocess.run([sys.executable, "-c", _WRITE_AND_FORK, path, repr(STEP)], check=True)
    assert len(read(path).steps) == 1


def test_an_unfinished_record_is_a_record():
    empty = Record("r", {})
    assert (empty.rank, empty.exit, empty.steps) == (0, None, ())

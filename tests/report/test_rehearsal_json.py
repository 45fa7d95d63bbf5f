"""What programs read of a rehearsal."""

import json

import pytest

from torchport import text
from torchport.report.rehearsal_json import SCHEMA, render


def strict(said):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(said, parse_constant=refuse)


def test_faults(faulty):
    found = strict(render(faulty))
    assert found["schema"] == SCHEMA == "torchport.rehearsal/1"
    assert found["virtual"]["gpu"] == "a100-sxm-80"
    first = found["findings"][0]
    assert (first["id"], first["severity"], first["count"], first["ranks"]) == ("R101", "error", 12, [])
    assert first["location"] == {"path": "model.py", "line": 18, "function": "forward"}
    assert [(place["path"], place["line"]) for place in first["places"]] == [
        ("model.py", 13),
        ("model.py", 16),
    ]
    (fields,) = first["fields"]
    assert fields["cuda_says"].startswith("RuntimeError: Expected all tensors")
    assert fields["tensors"][0]["born"] == {"path": "model.py", "line": 13, "function": "make_mask"}
    assert [finding["id"] for finding in found["findings"]] == [
        "R101",
        "R102",
        "R202",
        "R302",
        "R201",
        "R506",
    ]
    (rank,) = found["ranks"]
    assert (rank["rank"], rank["torn"], rank["exit"]["reason"], len(rank["steps"])) == (
        0,
        False,
        "finished",
        12,
    )
    assert rank["steps"][3]["syncs"] == 3
    assert rank["peaks"][0]["holders"][0]["site"]["line"] == 18
    assert found["transfers"][0] == {
        "site": {"path": "train.py", "line": 10, "function": "<module>"},
        "direction": "h2d",
        "pinned": False,
        "count": 12,
        "bytes": 49152,
    }


def test_losses_are_exact(faulty):
    for rank, record in zip(strict(render(faulty))["ranks"], faulty.records, strict=True):
        assert [float.fromhex(loss["hex"]) for loss in rank["losses"]] == [loss.value for loss in record.losses]


def test_the_language_changes_nothing(ran, events, english):
    def made():
        return render(ran(events.faulty))

    before = made()
    text.set_language("zh")
    assert made() == before


def test_numbers_that_json_does_not_have(ran):
    events = [
        {"kind": "loss", "step": step, "value": value, "site": 1}
        for step, value in enumerate(("nan", "inf", "-inf"), 1)
    ]
    losses = strict(render(ran(events)))["ranks"][0]["losses"]
    assert [(loss["value"], loss["hex"]) for loss in losses] == [(None, "nan"), (None, "inf"), (None, "-inf")]


@pytest.mark.parametrize("name", ["模型.py", "half\udce9.py", "\x1b[31m.py", "</script>.py"])
def test_any_name_is_ascii_and_comes_back(ran, name):
    fault = {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 1,
        "step": 1,
        "fields": {},
    }
    said = render(ran([fault], sites={1: (name, 1, name)}))
    assert said.isascii()
    assert strict(said)["findings"][0]["location"]["path"] == name


def test_a_killed_run_and_no_run(ran, events):
    killed = strict(render(ran([*events.steps(2)])))
    assert killed["ranks"][0]["exit"] is None
    assert strict(render(ran()))["ranks"] == []

"""What a terminal shows of a rehearsal."""

import re

import pytest
from rich.cells import cell_len

from torchport import text
from torchport.report.rehearsal_text import render


def test_faults(faulty, golden):
    golden("faulty.txt", render(faulty, width=100, page="/home/me/project/torchport-report.html"))


def test_nothing_found(clean, golden):
    golden("clean.txt", render(clean, width=80))


def test_two_ranks_one_killed(ran, events, golden):
    first = [*events.steps(6), *events.sums(6), events.finished]
    second = [*events.steps(5, gpu=1), *events.sums(5, gpu=1)]
    golden("two_ranks.txt", render(ran(first, second), width=100))


def test_chinese(ran, events, golden, english):
    text.set_language("zh")
    golden("chinese.txt", render(ran(events.faulty), width=80))


@pytest.mark.parametrize(
    ("exit", "expected"),
    [
        ({"reason": "finished"}, None),
        ({"reason": "steps"}, "ended after 3 steps, as --steps asked"),
        ({"reason": "interrupted"}, "interrupted in step 4"),
        ({"reason": "timeout"}, "stopped by --timeout in step 4"),
        ({"reason": "hung"}, "stopped, because the ranks wait for each other"),
        ({"reason": "oom"}, "stopped, because the tensors do not fit on the card"),
        ({"reason": "error", "code": 3}, "the program failed: exit code 3"),
        ({"reason": "error", "error": "ValueError: no {data}"}, "the program failed: ValueError: no {data}"),
        (
            {"reason": "error", "error": {"type": "ValueError", "message": "no data\nat all", "site": 8}},
            "the program failed: ValueError: no data, at train.py:12",
        ),
        ({"reason": "error", "error": {"type": "KeyboardError"}}, "the program failed: KeyboardError"),
        ({"reason": "from a later version", "code": 9}, "the program failed: exit code 9"),
        (None, "the process was killed in step 4; what was recorded until then is below"),
    ],
)
def test_how_it_ended(ran, events, exit, expected):
    event = [] if exit is None else [{"kind": "exit", "code": 0, "error": None, "seconds": 1, **exit}]
    lines = render(ran([*events.steps(3, leak=0), *event]), width=100).splitlines()
    assert lines[0] == "rehearsed train.py on 1 × A100-SXM4-80GB (virtual): 3 steps, no faults"
    assert lines[1] == (expected or "")


def test_the_worst_rank_speaks(ran, events):
    ended = [{**events.finished, "reason": reason} for reason in ("steps", "error", "interrupted")]
    assert render(ran(*([event] for event in ended)), width=100).splitlines()[1].startswith("rank 1: the program")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "rehearsed train.py on 1 × A100-SXM4-80GB (virtual): 0 steps, no faults"),
        ({"gpu": None}, "ran train.py on the CPU: 0 steps, no faults"),
        (
            {"gpu": "a card of next year"},
            "rehearsed train.py on 1 × a card of next year (virtual): 0 steps, no faults",
        ),
        ({"argv": ("/home/me/project/a/b.py", "x")}, "rehearsed a/b.py on"),
        ({"argv": ("/elsewhere/b.py",)}, "rehearsed /elsewhere/b.py on"),
        ({"argv": ("package.train", "--lr", "1"), "kind": "module"}, "rehearsed -m package.train on"),
        ({"argv": ()}, "rehearsed ? on"),
    ],
)
def test_headline(ran, changes, expected):
    assert render(ran([], **changes), width=100).splitlines()[0].startswith(expected)


def test_no_steps(ran, events):
    said = render(ran([events.finished]), width=80)
    assert "steps  none: no optimizer step was seen" in said
    assert not {"memory", "transfers", "waits", "notes"} & set(re.findall(r"^\w+", said, re.MULTILINE))


def test_no_records_at_all(ran):
    assert "0 steps" in render(ran(), width=80)


def test_two_losses_say_where(ran):
    losses = [
        {"kind": "loss", "step": step, "value": float(value).hex(), "site": site}
        for step in (1, 2)
        for site, value in ((8, 3 / step), (6, "nan"))
    ]
    step = {
        "kind": "step",
        "number": 1,
        "seconds": 1,
        "ops": 1,
        "syncs": 0,
        "loader_s": 0,
        "allocated": [],
        "peak": [],
    }
    said = render(ran([*losses, {**step, "h2d": [0, 0], "d2h": [0, 0], "d2d": [0, 0]}]), width=80)
    assert "loss 3 → 1.5  train.py:12" in said
    assert "loss nan → nan  train.py:16" in said


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_keep_to_the_width(faulty, english, width, language):
    text.set_language(language)
    said = render(faulty, width=width)
    # A path is never broken: a terminal makes it a link only whole.
    wide = [line for line in said.splitlines() if cell_len(line) > width and "/" not in line]
    assert wide == []


def test_places_stay_whole_in_narrow_terminals(ran):
    path = "some/very/deep/package/with/a/long/name/model.py"
    fault = {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 1,
        "step": 1,
        "fields": {},
    }
    assert f"R101 error  {path}:57\n" in render(ran([fault], sites={1: (path, 57, "f")}), width=40)


def test_colour_changes_nothing_but_colour(faulty):
    plain, coloured = render(faulty, width=90), render(faulty, width=90, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


HOSTILE = [
    "\x1b]0;owned\x07\x1b[2J.py",
    "a\nR101 error  fake.py",
    "bidi\u202e\u2066.py",
    "half\udce9.py",
    "[red]markup[/red] :smile:.py",
    "\x9b31m.py",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(ran, name):
    tensors = [{"name": name, "device": "cpu"}, {"name": name, "device": "cuda:0"}]
    fields = {"op": name, "tensors": tensors, "offender": 0, "cuda_says": name, "api": name}
    fault = {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 1,
        "step": 1,
        "fields": fields,
    }
    note = {**fault, "number": 2, "id": "R501", "severity": "info"}
    ended = {"kind": "exit", "code": 1, "reason": "error", "error": name, "seconds": 1}
    said = render(ran([fault, note, ended], sites={1: (name, 1, name)}, argv=(name,)), width=100)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]", said)
    assert "\nR101 error  fake.py" not in said
    said.encode("utf-8")
    if "[red]" in name:
        assert "[red]markup[/red] :smile:" in said


@pytest.mark.parametrize(
    ("reason", "colour"), [("finished", "1;32"), ("steps", "1;32"), ("error", "1;31"), ("timeout", "1;31")]
)
def test_the_headline_is_green_only_if_all_went_well(ran, events, reason, colour):
    said = render(ran([{**events.finished, "reason": reason}]), color=True)
    assert said.startswith(f"\x1b[{colour}m")


def test_the_environment_changes_nothing(faulty, monkeypatch):
    before = render(faulty, width=80, color=True)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "33"), ("FORCE_COLOR", "1")):
        monkeypatch.setenv(name, value)
    assert render(faulty, width=80, color=True) == before

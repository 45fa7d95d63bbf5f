"""A migration for programs: what it holds, and that no language gets into it."""

import json
import math

import pytest

from torchport.finding import Confidence, Finding, Location, Severity
from torchport.migrated import Adopted, Migrated, Proof
from torchport.report.migration_json import SCHEMA, render
from torchport.text import set_language

READ = Finding("C101", "said in words", Severity.ERROR, Confidence.CERTAIN, Location("train.py", 3, 5))
RAN = Finding("R101", "said in words", Severity.ERROR, Confidence.CERTAIN, Location("demo.ipynb cell [2]", 7))
MIGRATED = Migrated(
    entry="train.py --lr 1",
    patch="--- ä\n",
    patch_path="/project/torchport.patch",
    applied=False,
    backup=None,
    clean=False,
    works_on_cpu=True,
    gave_device=True,
    used_gpu=True,
    confirmed=(READ,),
    unreached=(READ,),
    only_run=(RAN,),
    left=(RAN,),
    refused=("batch at train.py:3",),
    repaired=("factory at train.py:3",),
    on_gpu=Proof((0.1, math.nan), (0.1, math.inf)),
    on_cpu=None,
    draws=(("train.py:4", "randn"),),
    recipes=(Adopted("ddp", "said in words"), Adopted("paths", on_gpu=Proof((1.0,), (1.0,)))),
    rounds=2,
    gpus=2,
    ranks=2,
    by_rehearsal=True,
    failure="",
    exit_code=1,
    seconds=1.23456,
)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_it_holds(language):
    set_language(language)
    try:
        text = render(MIGRATED)
    finally:
        set_language("en")
    assert text.isascii() and "said in words" not in text
    told = json.loads(text, parse_constant=pytest.fail)
    assert told["schema"] == SCHEMA == "torchport.migration/1"
    assert [(each["id"], each["path"], each["line"], each["seen"]) for each in told["findings"]] == [
        ("C101", "train.py", 3, "confirmed"),
        ("R101", "demo.ipynb cell [2]", 7, "only_run"),
        ("C101", "train.py", 3, "unreached"),
    ]
    assert told["left"] == [{"id": "R101", "path": "demo.ipynb cell [2]", "line": 7, "severity": "error"}]
    assert (told["gpus"], told["ranks"], told["exit_code"], told["patch"]) == (2, 2, 1, "--- ä\n")
    assert (told["used_gpu"], told["repaired"]) == (True, ["factory at train.py:3"])
    assert [(each["recipe"], each["applied"]) for each in told["recipes"]] == [("ddp", False), ("paths", True)]
    proof = told["losses"]["on_gpu"]
    assert told["losses"]["reference"] == "rehearsal" and told["losses"]["on_cpu"] is None
    assert (proof["same"], proof["first_difference"]) == (False, 1)
    assert proof["before"] == [{"value": 0.1, "hex": (0.1).hex()}, {"value": None, "hex": "nan"}]

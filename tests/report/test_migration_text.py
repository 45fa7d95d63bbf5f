"""A migration for the terminal."""

from torchport.finding import Finding, Location, Severity
from torchport.migrated import Migrated, Proof
from torchport.report.migration_text import render

PATCH = """--- train.py
+++ train.py
@@ -1 +1 @@
-model = Net()
+model = Net().to(device)
"""
FAULT = Finding("R101", "`x` (cpu) meets `w` (cuda:0) in `mm`", Severity.ERROR, location=Location("train.py", 7))


def migrated(**changes):
    proof = Proof((1.0, 0.5), (1.0, 0.5))
    told = {
        "entry": "train.py",
        "patch": PATCH,
        "patch_path": "torchport.patch",
        "applied": False,
        "backup": None,
        "clean": True,
        "works_on_cpu": True,
        "gave_device": False,
        "used_gpu": True,
        "repaired": (),
        "confirmed": (FAULT,),
        "unreached": (),
        "only_run": (),
        "left": (),
        "refused": (),
        "on_gpu": proof,
        "on_cpu": proof,
        "draws": (),
        "recipes": (),
        "gpus": 1,
        "ranks": 1,
        "by_rehearsal": False,
        "rounds": 1,
        "failure": "",
        "exit_code": 0,
        "seconds": 1.0,
    }
    return Migrated(**{**told, **changes})


def test_clean():
    assert render(migrated()) == (
        "before     1 fault on a GPU, at train.py:7\n"
        "after      runs on a GPU, with 2 losses as on the CPU, bit for bit\n"
        "\n" + PATCH + "\n"
        "train.py runs on a GPU, and computes what it did\n"
        "\n"
        "found      1 fault by reading and running; 0 by running only; 0 not exercised\n"
        "losses     on the GPU: 2 losses, bit for bit those of the CPU\n"
        "           on the CPU: 2 losses, bit for bit those before\n"
        "result     torchport.patch; git apply -p0 torchport.patch makes the changes\n"
    )


def test_what_is_left():
    text = render(migrated(clean=False, left=(FAULT,), on_gpu=Proof((1.0, 0.5), (1.0, 0.25)), exit_code=1))
    assert "after      1 fault is left" in text
    assert "they differ from number 2, by 0.5 at most" in text
    assert "left       R101  train.py:7  `x` (cpu) meets" in text


def test_a_program_that_fails():
    text = render(migrated(clean=False, failure="KeyError: 'x', train.py:3", exit_code=4))
    assert "after      not shown: the program itself fails" in text
    assert "stopped    KeyError: 'x', train.py:3" in text


def test_nothing_to_change():
    text = render(migrated(patch="", confirmed=()))
    assert text.startswith("before     no fault on a GPU\n")
    assert "train.py needs no change" in text
    assert "result     nothing to change" in text


def test_colours():
    assert "\x1b[32m+model = Net().to(device)" in render(migrated(), color=True)


def test_several_ranks_measured_by_a_rehearsal():
    text = render(migrated(gpus=2, ranks=2, by_rehearsal=True))
    assert "after      runs on a GPU, with 2 losses as before, bit for bit\n" in text
    assert "ranks      2 on 2 GPUs; what several of them saw is one fault" in text
    assert "on the GPU: 2 losses, bit for bit those of the project before" in text
    assert "ranks      1 on 2 GPUs\n" in render(migrated(gpus=2))

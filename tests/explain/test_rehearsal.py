"""Records of rehearsals and what is found in them."""

import pytest

from torchport.explain.rehearsal import findings
from torchport.explain.rehearsal_ids import REHEARSAL_IDS
from torchport.finding import Confidence, Location, Severity

SITES = {
    1: ("model.py", 41, "make_mask"),
    2: ("model.py", 57, "forward"),
    3: ("train.py", 9, "<module>"),
    4: ("train.py", 20, "<module>"),
    5: ("model.py", 50, "forward"),
}


def tensor(name=None, device="cpu", **more):
    keys = ("argument", "born", "born_by", "moved", "moved_by", "parameter")
    return {"name": name, "device": device, "dtype": "float32", **dict.fromkeys(keys), **more}


MASK = tensor("mask", born={"site": 1}, born_by="torch.ones")
SCORES = tensor("scores", "cuda:0", born={"site": 5}, born_by="aten::bmm")
LENGTHS = tensor(
    "lengths", "cuda:0", moved={"site": 3}, moved_by=".to('cuda')", born={"site": 1}, born_by="torch.tensor"
)


def seen(id="R101", number=1, site=2, severity="error", **fields):
    return {
        "kind": "finding",
        "number": number,
        "id": id,
        "severity": severity,
        "site": site,
        "step": 1,
        "fields": fields,
    }


def step(number, allocated=(0,), syncs=0):
    return {
        "kind": "step",
        "number": number,
        "seconds": 0.1,
        "ops": 1,
        "syncs": syncs,
        "h2d": [0, 0],
        "d2h": [0, 0],
        "d2d": [0, 0],
        "loader_s": 0,
        "allocated": list(allocated),
        "peak": list(allocated),
    }


MESSAGES = [
    (
        "a mask from another function",
        seen(op="aten::add.Tensor", tensors=[MASK, SCORES], offender=0),
        "`mask` (cpu, made at model.py:41 by torch.ones) meets `scores` (cuda:0) in `add`",
    ),
    (
        "the function as users know it",
        seen(op="aten::addmm", api="torch.nn.functional.linear", tensors=[SCORES, MASK], offender=1),
        "`mask` (cpu, made at model.py:41 by torch.ones) meets `scores` (cuda:0) in `torch.nn.functional.linear`",
    ),
    (
        "the line of source names no function",
        seen(op="aten::mul.Tensor", api="y = scores * mask", tensors=[SCORES, MASK], offender=1),
        "`mask` (cpu, made at model.py:41 by torch.ones) meets `scores` (cuda:0) in `mul`",
    ),
    (
        "without names",
        seen(op="aten::add", tensors=[tensor(argument="other"), tensor(device="cuda:1")], offender=0),
        "argument `other` (cpu) meets a tensor (cuda:1) in `add`",
    ),
    (
        "a shape says more than the name of an argument",
        seen(op="aten::add", tensors=[tensor(argument="other", shape=[8, 32]), tensor(shape=[])], offender=0),
        "a tensor of shape [8, 32] (cpu) meets a tensor of shape [] (cpu) in `add`",
    ),
    (
        "a parameter",
        seen(op="aten::addmm", tensors=[tensor(parameter="encoder.weight"), SCORES], offender=0),
        "parameter `encoder.weight` (cpu) meets `scores` (cuda:0) in `addmm`",
    ),
    (
        "born where it fails says nothing new",
        seen(site=1, op="aten::add", tensors=[MASK, SCORES], offender=0),
        "`mask` (cpu) meets `scores` (cuda:0) in `add`",
    ),
    (
        "the last move counts more than the birth",
        seen("R104", op="aten::_pack_padded_sequence", tensors=[LENGTHS], offender=0),
        "`lengths` (cuda:0, moved at train.py:9 by .to('cuda')) has to stay on the CPU for `_pack_padded_sequence`",
    ),
    ("numpy", seen("R102", tensors=[SCORES], offender=0), None),
    ("no tensors, no sentence", seen(op="aten::add"), REHEARSAL_IDS["R101"].title),
    (
        "fields of the wrong kind",
        seen(tensors=3, offender="x", remedy=[], extra=7, ranks=1),
        REHEARSAL_IDS["R101"].title,
    ),
    (
        "an offender that is not there",
        seen(op="aten::add", tensors=[SCORES], offender=7),
        REHEARSAL_IDS["R101"].title,
    ),
    (
        "braces in names stay what they are",
        seen(op="aten::add", tensors=[tensor("x['{api}']"), SCORES], offender=0),
        "`x['{api}']` (cpu) meets `scores` (cuda:0) in `add`",
    ),
    (
        "extra parts",
        seen("R106", extra={"device": "cuda:3", "gpus": 1}),
        "cuda:3 is asked for; GPUs of this machine: 1",
    ),
    ("a remark", seen("R504", site=None, severity="info", what="RTX 4090"), None),
    ("an id from a later version", seen("R999", severity="?", what="something new"), "something new"),
]


@pytest.mark.parametrize(("event", "expected"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_messages(recorded, event, expected):
    (finding,) = findings((recorded([event], SITES),))
    if expected is not None:
        assert finding.message == expected
    assert "{" not in finding.message.replace("{api}", "")


REMEDIES = [
    (
        {"kind": "create-on", "target": "mask", "device": "scores.device", "site": {"site": 1}},
        "Make it on the device of `scores`: `torch.ones(…, device=…)` at model.py:41",
    ),
    (
        {"kind": "create-on", "target": "mask", "device": "scores.device", "site": {"site": 5}},
        "Make it on that device: `torch.ones(…, device=scores.device)` at model.py:50",
    ),
    (
        {"kind": "move", "target": "mask", "device": "cuda:0"},
        'Move it there: `mask.to("cuda:0")` at model.py:57',
    ),
    (
        {"kind": "move", "target": "mask", "device": "'cuda:0'"},
        "Move it there: `mask.to('cuda:0')` at model.py:57",
    ),
    ({"kind": "to-cpu", "target": "mask"}, "Bring it to the host: `mask.cpu()` at model.py:57"),
    (
        {"kind": "register-buffer", "target": "self.mask", "site": {"site": 1}},
        'Register it, so that it moves with its module: `self.register_buffer("mask", …)` at model.py:41',
    ),
    (
        {"kind": "module-to", "target": "net.fc.weight", "device": "x.device"},
        "Move the module that holds `net.fc.weight` before it is used: `.to(x.device)`",
    ),
    ({"kind": "move", "target": "mask"}, REHEARSAL_IDS["R101"].fix),
    ({"kind": "never heard of"}, REHEARSAL_IDS["R101"].fix),
    ({}, REHEARSAL_IDS["R101"].fix),
    (None, REHEARSAL_IDS["R101"].fix),
]


@pytest.mark.parametrize(("remedy", "expected"), REMEDIES)
def test_remedies(recorded, remedy, expected):
    event = seen(op="aten::add", tensors=[MASK, SCORES], offender=0, remedy=remedy)
    (finding,) = findings((recorded([event], SITES),))
    assert finding.remedy == expected


def test_evidence_in_order(recorded):
    event = seen(
        op="aten::add.Tensor",
        api="scores = scores + mask",
        tensors=[MASK, SCORES],
        offender=0,
        in_backward=True,
        cuda_says="RuntimeError: no",
    )
    (finding,) = findings((recorded([event], SITES),))
    assert [(e.text, str(e.location or ""), e.quote) for e in finding.evidence] == [
        ("", "model.py:57", "scores = scores + mask"),
        ("`mask` (cpu) was made by torch.ones", "model.py:41", ""),
        ("`scores` (cuda:0) was made by bmm", "model.py:50", ""),
        ("in the backward pass of this line", "", ""),
        ("CUDA would say", "", "RuntimeError: no"),
    ]
    assert finding.location == Location("model.py", 57, None, "forward")


def test_ranks_of_one_fault_are_counted(recorded):
    def rank(number, count, name="scores"):
        there = {**SCORES, "name": name, "device": f"cuda:{number}", "shape": [number]}
        events = [
            seen(op="aten::add", tensors=[MASK, there], offender=0),
            {"kind": "totals", "findings": [[1, count]]},
        ]
        return recorded(events, SITES, rank=number, world=3)

    same, other = findings((rank(0, 12), rank(1, 11), rank(2, 1, name="logits")))
    assert (same.count, same.ranks) == (23, (0, 1))
    assert (other.count, other.ranks) == (1, (2,))
    assert "cuda:0" in same.message
    (alone,) = findings((rank(1, 4),))
    assert alone.ranks == ()


def test_two_tensors_at_one_place_are_two_faults(recorded):
    other = {**MASK, "name": "bias", "born": {"site": 5}}
    events = [seen(op="aten::add", tensors=[t, SCORES], offender=0, number=n) for n, t in enumerate((MASK, other), 1)]
    assert len(findings((recorded(events, SITES),))) == 2


def test_errors_come_first_and_keep_their_order(recorded):
    events = [
        seen("R501", 1, severity="info", what="model"),
        seen("R202", 2, severity="warning", what="x"),
        seen("R110", 3, op="aten::index_select", site=3),
        seen("R101", 4, op="aten::add", site=4),
    ]
    assert [f.id for f in findings((recorded(events, SITES),))] == ["R110", "R101", "R202", "R501"]


def test_collectives_that_do_not_match(recorded):
    fields = {
        "rank": None,
        "ranks": [
            {"rank": 0, "op": "all_reduce", "shapes": ["[4]"], "site": {"site": 4}, "state": "enter"},
            {"rank": 1, "op": "broadcast", "shapes": ["[2]"], "site": {"site": 3}, "state": "enter"},
            {"rank": 2, "op": None, "shapes": [], "site": None, "state": "died", "code": 1},
        ],
        "last_common": {"op": "all_reduce", "shapes": ["[10]"], "site": {"site": 5}},
    }
    records = [recorded([seen("R401", site=site, **fields)], SITES, rank=r, world=2) for r, site in enumerate((4, 3))]
    (finding,) = findings(tuple(records))
    assert (
        finding.message == "the ranks call different collectives: rank 0 all_reduce [4], rank 1 broadcast [2], rank 2 ?"
    )
    assert [(e.text, str(e.location)) for e in finding.evidence] == [
        ("the last collective that all ranks passed: all_reduce [10]", "model.py:50"),
        ("rank 0 waits in all_reduce [4]", "train.py:20"),
        ("rank 1 waits in broadcast [2]", "train.py:9"),
        ("rank 2 died, with exit code 1", "None"),
    ]


@pytest.mark.parametrize(
    ("op", "count", "steps", "expected"),
    [
        ("_local_scalar_dense", 12, 12, Severity.INFO),
        ("_local_scalar_dense", 6, 12, Severity.INFO),
        ("_local_scalar_dense", 5, 12, None),
        ("_local_scalar_dense", 36, 12, Severity.WARNING),
        ("nonzero", 36, 12, Severity.WARNING),
        ("copy d2h", 12, 12, Severity.INFO),
        ("copy h2d", 24, 12, None),
        ("_local_scalar_dense", 2, 2, None),
        ("_local_scalar_dense", 9, 0, None),
    ],
)
def test_waits_in_steps(recorded, op, count, steps, expected):
    events = [
        *(step(n) for n in range(1, steps + 1)),
        {"kind": "totals", "syncs": [[4, op, count], [None, op, 99]]},
    ]
    found = findings((recorded(events, SITES),))
    assert [(f.id, f.severity, str(f.location)) for f in found] == (
        [("R201", expected, "train.py:20")] if expected else []
    )
    if found:
        assert found[0].message.endswith(f"waits for the GPU: {count} times in {steps} steps")


GROWTHS = [
    ("a leak", [10, 20, 30, 40, 50, 60], True),
    ("a leak after the first steps", [90, 50, 60, 70, 80, 90, 100], True),
    ("four growths are too few", [10, 20, 30, 40, 50], False),
    ("one step that is equal", [10, 20, 30, 30, 40, 50], False),
    ("constant", [50] * 20, False),
    ("optimizer state, then constant", [10, 50, *[50] * 10], False),
    ("batches of random length", [5, 1, 2, 3, 4, 5, 6, 1, 4, 2, 6, 3, 1, 5], False),
    ("a leak that an epoch's end clears", [*range(1, 12), *range(1, 12)], True),
    ("no steps", [], False),
]


@pytest.mark.parametrize(("sizes", "expected"), [row[1:] for row in GROWTHS], ids=[row[0] for row in GROWTHS])
def test_memory_that_grows(recorded, sizes, expected):
    events = [step(number, [size * 1024]) for number, size in enumerate(sizes, 1)]
    assert [f.id for f in findings((recorded(events, SITES),))] == ["R302"] * expected


def test_what_grows_is_named(recorded):
    holders = [
        ["parameter", "net", None, 900, 40],
        ["activation", None, 2, 800, 3],
        ["activation", None, 4, 700, 8],
        ["other", None, 3, 10, 9],
    ]
    events = [step(n, [0, 1024 * n]) for n in range(1, 9)]
    peak = {"kind": "peak", "gpu": 1, "bytes": 9, "step": 8, "holders": holders}
    ranks = tuple(recorded([*events, peak], SITES, rank=rank, world=2) for rank in (0, 1))
    (finding,) = findings(ranks)
    assert finding.message == "memory on cuda:1 grows by 1.00 KiB a step, from step 1 to step 8"
    assert (str(finding.location), finding.ranks) == ("train.py:20", (0, 1))
    assert finding.confidence is Confidence.LIKELY


IDLE = [
    ("nothing on the GPU", {"gpu_bytes": 0, "operators": [["aten::add", 3]]}, "ended", ["R205"]),
    ("something on the GPU", {"gpu_bytes": 512, "operators": [["aten::add", 3]]}, "ended", []),
    ("nothing computed", {"gpu_bytes": 0, "operators": []}, "ended", []),
    ("nobody counted", {"operators": [["aten::add", 3]]}, "ended", []),
    ("failed before it came to the GPU", {"gpu_bytes": 0, "operators": [["aten::add", 3]]}, "error", []),
]


@pytest.mark.parametrize(("totals", "reason", "expected"), [row[1:] for row in IDLE], ids=[row[0] for row in IDLE])
def test_a_gpu_that_is_never_used(recorded, totals, reason, expected):
    events = [{"kind": "totals", **totals}, {"kind": "exit", "code": 0, "reason": reason, "error": None}]
    assert [f.id for f in findings((recorded(events, SITES),))] == expected


def test_draws_are_listed_by_line(recorded):
    totals = {"kind": "totals", "draws": [[4, "dropout", 24], [3, "randn", 1], [None, "rand", 2]]}
    (finding,) = findings((recorded([totals], SITES),))
    assert (finding.id, finding.severity) == ("R506", Severity.INFO)
    assert "(27 ×)" in finding.message
    assert [(e.text, str(e.location or "")) for e in finding.evidence] == [
        ("`rand` ×2", ""),
        ("`dropout` ×24", "train.py:20"),
        ("`randn` ×1", "train.py:9"),
    ]


def test_nothing_recorded_nothing_found(recorded):
    assert findings(()) == ()
    assert findings((recorded([]),)) == ()

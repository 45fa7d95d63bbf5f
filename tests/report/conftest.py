"""A small project and the runs that are reported here."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from torchport.explain.rehearsal import findings
from torchport.facts import Facts, HostFacts, TorchFacts
from torchport.plan import Plan, Run, VirtualGpus

MODEL = '''\
"""A small attention model."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def make_mask(self, length: int) -> torch.Tensor:
        return torch.ones(length, length).tril()

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        mask = self.make_mask(x.shape[1])
        return (scores + mask).softmax(-1) @ x
'''

TRAIN = """\
import torch

from model import Attention

device = "cuda" if torch.cuda.is_available() else "cpu"
model = Attention(64).to(device)
optimizer = torch.optim.Adam(model.parameters())
history = []
for x, y in batches():
    x = x.to(device, non_blocking=True)
    loss = (model(x).mean() - y.to(device)) ** 2
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    history.append(loss)
    print(loss.item())  # 每步打印一次损失
predictions = model(x).numpy()
"""

SOURCES = {"model.py": MODEL, "train.py": TRAIN}

SITES = {
    1: ("model.py", 13, "make_mask"),
    2: ("model.py", 18, "forward"),
    3: ("model.py", 16, "forward"),
    4: ("train.py", 10, "<module>"),
    5: ("train.py", 11, "<module>"),
    6: ("train.py", 16, "<module>"),
    7: ("train.py", 17, "<module>"),
    8: ("train.py", 12, "<module>"),
}

SAME_DEVICE = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
)
TO_NUMPY = (
    "TypeError: can't convert cuda:0 device type tensor to numpy. "
    "Use Tensor.cpu() to copy the tensor to host memory first."
)


def tensor(name, device, born=None, born_by=None):
    place = {"site": born} if born else None
    return {
        "name": name,
        "device": device,
        "dtype": "float32",
        "shape": [4],
        "born": place,
        "born_by": born_by,
    }


FAULTS = [
    {
        "kind": "finding",
        "number": 1,
        "id": "R101",
        "severity": "error",
        "site": 2,
        "step": 1,
        "fields": {
            "op": "aten::add.Tensor",
            "api": "return (scores + mask).softmax(-1) @ x",
            "cuda_says": SAME_DEVICE,
            "tensors": [tensor("mask", "cpu", 1, "torch.ones"), tensor("scores", "cuda:0", 3, "aten::bmm")],
            "offender": 0,
            "remedy": {"kind": "create-on", "target": "mask", "device": "scores.device", "site": {"site": 1}},
        },
    },
    {
        "kind": "finding",
        "number": 2,
        "id": "R102",
        "severity": "error",
        "site": 7,
        "step": 12,
        "fields": {
            "op": "numpy",
            "api": "predictions = model(x).numpy()",
            "cuda_says": TO_NUMPY,
            "tensors": [tensor("model(x)", "cuda:0", 2, "aten::bmm")],
            "offender": 0,
            "remedy": {"kind": "to-cpu", "target": "model(x)", "site": {"site": 2}},
        },
    },
    {
        "kind": "finding",
        "number": 3,
        "id": "R202",
        "severity": "warning",
        "site": 4,
        "step": 1,
        "fields": {"what": "non_blocking", "text": "not pinned"},
    },
]


def steps(count, leak=1 << 18, gpu=0):
    """Steps of a model that holds 9 MiB and keeps ``leak`` bytes of each."""
    held = 9 << 20
    for number in range(1, count + 1):
        yield {"kind": "loss", "step": number, "value": (6.25 * math.exp(-number / 20)).hex(), "site": 8}
        curve = [[at * 7, int(held + math.sin(math.pi * at / 20) * (10 << 20))] for at in range(21)]
        yield {"kind": "memory", "gpu": gpu, "step": number, "points": curve}
        pad = [0] * gpu
        yield {
            "kind": "step",
            "number": number,
            "seconds": 0.05,
            "ops": 330,
            "syncs": 1 if number % 4 else 3,
            "h2d": [2, 4112],
            "d2h": [1, 4 if number % 4 else 1200],
            "d2d": [0, 0],
            "loader_s": 0.002,
            "allocated": [*pad, held + leak * number],
            "peak": [*pad, held + (10 << 20) + leak * number],
        }


def sums(count, gpu=0):
    """What the totals say after that many steps."""
    holders = [
        ["activation", None, 2, 6 << 20, 14],
        ["optimizer state", "query", None, 3 << 20, 4],
        ["parameter", "query", None, 3 << 19, 1],
        ["gradient", "query", None, 3 << 19, 1],
        ["other", None, None, 4000, 9],
    ]
    yield {"kind": "peak", "gpu": gpu, "bytes": 19 << 20, "step": count, "holders": holders}
    yield {
        "kind": "totals",
        "operators": [["aten::bmm", 24 * count], ["aten::addmm", 12 * count], ["aten::add.Tensor", 2]],
        "syncs": [[6, "_local_scalar_dense", count], [7, "copy d2h", 1]],
        "draws": [[3, "native_dropout", count]],
        "transfers": [
            [4, "h2d", False, count, 4096 * count],
            [5, "h2d", False, count, 16 * count],
            [6, "d2h", False, count, 4 * count],
        ],
        "findings": [[1, count], [2, 1], [3, count]],
    }


FINISHED = {"kind": "exit", "code": 0, "reason": "finished", "error": None, "seconds": 2.3}


FAULTY = [*FAULTS, *steps(12), *sums(12), FINISHED]


@pytest.fixture
def events():
    """The parts that runs are made of."""
    parts = {"faults": FAULTS, "steps": steps, "sums": sums, "finished": FINISHED, "faulty": FAULTY}
    return SimpleNamespace(**parts, sources=SOURCES)


@pytest.fixture
def ran(recorded):
    """Makes a run of the lists of events of its ranks."""

    def make(*ranks, sites=SITES, gpu="a100-sxm-80", argv=("train.py",), **changes):
        records = tuple(
            replace(recorded(events, sites, rank=rank, world=len(ranks)), path=f"record-{rank}.jsonl")
            for rank, events in enumerate(ranks)
        )
        plan = Plan(
            argv=argv,
            kind=changes.pop("kind", "script"),
            python="/usr/bin/python3",
            folder="/home/me/project",
            project="/home/me/project",
            gpus_per_node=len(ranks) or 1,
            processes=len(ranks) or 1,
            virtual=VirtualGpus(gpu) if gpu else None,
        )
        facts = Facts(
            host=HostFacts("Linux", "x86_64", 2, 8 << 30),
            torch=TorchFacts("/usr/bin/python3", (3, 11, 7), "2.13.0+cpu"),
        )
        folder = "/home/me/project/.torchport/runs/20260102-030405-train"
        run = Run(folder, plan, facts, records, findings(records), 1, 2.34)
        return replace(run, **changes)

    return make


@pytest.fixture
def faulty(ran):
    """Twelve steps with two faults, two warnings and remarks."""
    return ran(FAULTY)


@pytest.fixture
def clean(ran):
    """Four steps with nothing to find."""
    return ran([*steps(4, leak=0), FINISHED])


@pytest.fixture
def golden(request):
    """Compares text with the file of that name beside the tests; ``--update-golden`` writes it."""

    def compare(name, text):
        path = request.path.with_name("golden") / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"{path}: see the difference, then --update-golden"

    return compare

"""A parameter tells where the module was built that it belongs to."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from torchport.inside.vcuda import virtual_cuda


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner.fc(x)


def test_where_the_module_was_built():
    with virtual_cuda() as session:
        model = Outer()  # BUILT
        model(torch.ones(2, 3, device="cuda"))
        (seen,) = session.machine.faults.seen.values()
    inner, (code, line) = seen.fields["tensors"][seen.fields["offender"]]["built"]
    assert inner[0].co_qualname.startswith("Outer.") if hasattr(inner[0], "co_qualname") else inner
    assert code.co_name == "test_where_the_module_was_built"
    assert "# BUILT" in Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1]


def test_other_tensors_belong_to_none():
    with virtual_cuda() as session:
        torch.ones(3, device="cuda") + torch.ones(3)
        (seen,) = session.machine.faults.seen.values()
    assert [tensor["built"] for tensor in seen.fields["tensors"]] == [[], []]


def test_what_a_tensor_was_computed_from():
    with virtual_cuda() as session:
        start = torch.ones(3)  # ROOT
        longer = torch.cat([start * 2, start])
        torch.ones(6, device="cuda") + longer
        (seen,) = session.machine.faults.seen.values()
    tensor = seen.fields["tensors"][seen.fields["offender"]]
    assert tensor["root_by"] == "torch.ones"
    assert "# ROOT" in Path(__file__).read_text(encoding="utf-8").splitlines()[tensor["root"][1] - 1]
    assert tensor["born"][1] == tensor["root"][1] + 1


def made():
    return SimpleNamespace(rows=torch.ones(3))


def meets(rows):
    return torch.ones(3, device="cuda") + rows


def set_by_name():
    held = made()
    rows = held.rows  # SET
    return meets(rows.view(3))


def handed_on():
    held = made()
    return meets(held.rows)  # SET HERE


def used_where_it_is():
    torch.ones(3, device="cuda") + made().rows


@pytest.mark.parametrize(("call", "mark"), [(set_by_name, "# SET"), (handed_on, "# SET HERE"), (used_where_it_is, "")])
def test_where_the_program_gives_a_tensor_its_name(call, mark):
    with virtual_cuda() as session:
        call()
        (seen,) = session.machine.faults.seen.values()
    place = seen.fields["tensors"][seen.fields["offender"]]["set"]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[place[1] - 1].endswith(mark) if mark else place is None


class Keeps(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows  # KEPT

    def forward(self, x):
        return x + self.rows


def test_what_a_module_keeps_is_to_be_registered():
    with virtual_cuda() as session:
        Keeps(made().rows).cuda()(torch.ones(3, device="cuda"))
        (seen,) = session.machine.faults.seen.values()
    remedy = seen.fields["remedy"]
    assert remedy["kind"] == "register-buffer"
    assert "# KEPT" in Path(__file__).read_text(encoding="utf-8").splitlines()[remedy["place"][1] - 1]

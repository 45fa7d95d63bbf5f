"""Findings order themselves by what happens to the run."""

import pytest

from torchport.finding import Confidence, Location, Severity


def test_severity_orders_from_remark_to_fault():
    assert Severity.INFO < Severity.WARNING < Severity.ERROR
    assert max(Severity.WARNING, Severity.INFO, Severity.ERROR) is Severity.ERROR
    assert Severity("warning") >= Severity.WARNING
    assert Confidence.POSSIBLE < Confidence.LIKELY < Confidence.CERTAIN


def test_severity_and_confidence_do_not_compare():
    with pytest.raises(TypeError):
        assert Severity.INFO < Confidence.CERTAIN


@pytest.mark.parametrize(
    ("location", "expected"),
    [(Location("src/model.py", 41), "src/model.py:41"), (Location("train.py", 7, 3), "train.py:7:3")],
)
def test_location_reads_as_an_editor_takes_it(location, expected):
    assert str(location) == expected

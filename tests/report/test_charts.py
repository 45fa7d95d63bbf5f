"""Charts: what they draw, and that they stay small."""

import math
import re
from xml.etree import ElementTree

import pytest

from torchport.report.charts import MOST_BARS, MOST_POINTS, bars, in_bytes, lines, whole


def hint(first, last, values):
    return f"{first}-{last} & {values}"


def paths(chart, name):
    return re.findall(rf'class="{name}[^"]*" d="([^"]*)"', chart.svg)


@pytest.mark.parametrize(
    ("values", "filled", "expected"),
    [
        ([0, 10], False, ("10", "7.5", "5", "2.5", "0")),
        ([6.29, 4.47], False, ("6.5", "6", "5.5", "5", "4.5", "4")),
        ([0.0001, 0.0003], False, ("0.0003", "0.00025", "0.0002", "0.00015", "0.0001")),
        ([5, 5], False, None),
        ([0, 0], False, None),
        ([-1, 1], False, ("1", "0.5", "0", "-0.5", "-1")),
        ([5, 7], True, ("8", "6", "4", "2", "0")),
        ([1e30, 3e30], False, None),
        ([1e-300], False, None),
    ],
)
def test_ticks_are_round(values, filled, expected):
    chart = lines([("a", list(enumerate(values)))], ends=(), filled=filled)
    if expected is not None:
        assert chart.ticks == expected
    low, high = float(chart.ticks[-1]), float(chart.ticks[0])
    assert low <= min(values)
    assert max(values) <= high
    assert 2 <= len(chart.ticks) <= 6


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (18 << 20, ("20 MiB", "16 MiB", "12 MiB", "8 MiB", "4 MiB", "0 B")),
        (512, ("512 B", "384 B", "256 B", "128 B", "0 B")),
        (1 << 30, ("1 GiB", "768 MiB", "512 MiB", "256 MiB", "0 B")),
        (79 << 30, ("96 GiB", "64 GiB", "32 GiB", "0 B")),
    ],
)
def test_ticks_in_bytes_are_powers_of_two(size, expected):
    assert set(lines([("a", [(0, 0), (1, size)])], ends=(), words=in_bytes, filled=True).ticks) <= {
        *expected,
        "24 MiB",
    }


@pytest.mark.parametrize(("high", "expected"), [(1, "1 0"), (3, "3 2 1 0"), (9, "10 5 0"), (60, "60 40 20 0")])
def test_ticks_of_counts_are_whole(high, expected):
    assert " ".join(bars([("a", [float(high)])], ends=(), hint=hint, words=whole).ticks) == expected


def test_gaps_and_single_points():
    chart = lines([("a", [(0, 1), (1, 2), (2, math.nan), (3, 1), (4, math.inf), (5, 4)])], ends=())
    assert len(paths(chart, "line")) == 3
    assert sum("h.01" in path for path in paths(chart, "line")) == 2


@pytest.mark.parametrize("series", [[], [("a", [])], [("a", [(0, math.nan)])]])
def test_nothing_to_draw(series):
    assert lines(series, ends=()) is None


@pytest.mark.parametrize("stacks", [[], [("a", [])], [("a", [0, 0]), ("b", [0, 0])]])
def test_no_bars(stacks):
    assert bars(stacks, ends=(), hint=hint) is None


def test_long_lines_keep_their_extremes():
    points = [(at, 1.0) for at in range(100_000)]
    points[54_321] = (54_321, 9.0)
    points[54_322] = (54_322, -9.0)
    chart = lines([("a", points)], ends=())
    (path,) = paths(chart, "line")
    assert path.count("L") <= MOST_POINTS
    assert {"9.0", "171.0"} <= set(re.findall(r" ([\d.]+)(?:L|$)", path))


def test_many_steps_share_bars():
    chart = bars([("a", [1.0] * 5000), ("b", [3.0] * 5000)], ends=(), hint=hint)
    assert chart.svg.count("<g>") <= MOST_BARS
    assert chart.ticks[0] == "4"
    assert "<title>0-41 &amp; [1.0, 3.0]</title>" in chart.svg


def test_drawings_are_xml_without_styles_or_links():
    for chart in (
        lines([("<b>", [(0, 1), (1, 3)])], ends=("<i>",), filled=True, marks=(0.5,)),
        bars([("<b>", [1.0, 2.0])], ends=(), hint=lambda first, last, values: "<script>"),
    ):
        root = ElementTree.fromstring(chart.svg)
        names = {name for node in root.iter() for name in node.attrib}
        assert not names & {"style", "href", "onload"}
        assert "<script>" not in chart.svg

"""Charts as inline SVG: only shapes, which stretch with the page, while the page sets the words around them.

No chart draws more than some hundreds of shapes, however long the run was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from torchport.text import binary_size

WIDTH, HEIGHT = 600, 180
MOST_POINTS = 400
MOST_BARS = 120

Point = tuple[float, float]
Words = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, the ticks of its upright axis from the top, the ends of the other, what colours mean."""

    svg: Markup
    ticks: tuple[str, ...]
    ends: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    step: float

    def y(self, value: float) -> float:
        return HEIGHT - (value - self.low) / (self.high - self.low) * HEIGHT

    def levels(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.high - index * self.step for index in range(count + 1)]


def plain(value: float) -> str:
    """A tick that is not in bytes."""
    return f"{value:.4g}"


def whole(value: float) -> str:
    """A tick of what is counted."""
    return f"{value:.0f}"


def in_bytes(value: float) -> str:
    """A tick in bytes: they are round, so "24 MiB" says it all."""
    number, unit = binary_size(value).split(" ")
    return f"{float(number):g} {unit}"


def lines(
    series: Sequence[tuple[str, Sequence[Point]]],
    *,
    ends: tuple[str, ...],
    words: Words = plain,
    filled: bool = False,
    marks: Iterable[float] = (),
) -> Chart | None:
    """Lines over a common axis; ``filled`` starts at zero and fills below. NaN is a gap."""
    shown = [(name, [point for point in points if math.isfinite(point[0])]) for name, points in series]
    values = [y for _name, points in shown for _x, y in points if math.isfinite(y)]
    xs = [x for _name, points in shown for x, _y in points]
    if not values:
        return None
    scale = _scale([*values, 0.0] if filled else values, words)
    left, right = min(xs), max(xs)

    def x(value: float) -> float:
        return (value - left) / (right - left) * WIDTH if right > left else WIDTH / 2

    shapes = [_grid(scale)]
    shapes += [Markup('<path class="mark" d="M{0:.1f} 0V{1}"/>').format(x(at), HEIGHT) for at in marks]
    for index, (_name, points) in enumerate(shown):
        runs = _runs([(x(at), scale.y(value) if math.isfinite(value) else math.nan) for at, value in _thin(points)])
        if filled:
            shapes += [_area(run, index) for run in runs if len(run) > 1]
        shapes += [Markup('<path class="line s{}" d="{}"/>').format(index % 8, _path(run)) for run in runs]
    return Chart(_svg(shapes), tuple(map(words, scale.levels())), ends, tuple(name for name, _points in shown))


def bars(
    stacks: Sequence[tuple[str, Sequence[float]]],
    *,
    ends: tuple[str, ...],
    hint: Callable[[int, int, Sequence[float]], str],
    words: Words = plain,
) -> Chart | None:
    """One bar a step, stacked. Of more steps than fit, neighbours share a bar that shows their mean.

    ``hint(first, last, values)`` is what the bar of the steps with these indices says when pointed at.
    """
    count = max((len(values) for _name, values in stacks), default=0)
    if not count or not any(any(values) for _name, values in stacks):
        return None
    size = -(-count // MOST_BARS)
    groups = [range(start, min(start + size, count)) for start in range(0, count, size)]
    means = [[sum(values[i] for i in group) / len(group) for _name, values in stacks] for group in groups]
    scale = _scale([0.0, *(sum(row) for row in means)], words)
    slot = WIDTH / len(groups)
    width = min(slot * 0.7, 40.0)
    shapes = [_grid(scale)]
    for number, (group, row) in enumerate(zip(groups, means, strict=True)):
        left, base = slot * number + (slot - width) / 2, 0.0
        parts = []
        for index, value in enumerate(row):
            if value:
                top = scale.y(base + value)
                parts.append(
                    Markup('<rect class="bar s{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                        index % 8, left, top, width, scale.y(base) - top
                    )
                )
                base += value
        # A bar of nothing still answers when it is pointed at.
        parts.append(
            Markup('<rect class="hit" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>').format(
                slot * number, slot, HEIGHT
            )
        )
        words_ = escape(hint(group[0], group[-1], row))
        shapes.append(Markup("<g><title>{}</title>{}</g>").format(words_, Markup("").join(parts)))
    return Chart(_svg(shapes), tuple(map(words, scale.levels())), ends, tuple(name for name, _values in stacks))


def _svg(shapes: Sequence[Markup]) -> Markup:
    start = Markup('<svg viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">').format(WIDTH, HEIGHT)
    return start + Markup("").join(shapes) + Markup("</svg>")


def _grid(scale: _Scale) -> Markup:
    path = "".join(f"M0 {scale.y(level):.1f}H{WIDTH}" for level in scale.levels())
    return Markup('<path class="grid" d="{}"/>').format(path)


def _scale(values: Sequence[float], words: Words) -> _Scale:
    """Two to five round steps that hold all values."""
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    if words is in_bytes:
        base = 1024.0 ** math.floor(math.log(span, 1024))
        choices = [base * 2.0**power for power in range(-10, 11)]
    else:
        base = 10.0 ** math.floor(math.log10(span))
        choices = [base * factor for factor in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0)]
    if words is whole:
        choices = [choice for choice in choices if choice.is_integer()] or [1.0]
    step = next((choice for choice in choices if span / choice <= 4), choices[-1])
    bottom = math.floor(low / step + 1e-9) * step
    top = math.ceil(high / step - 1e-9) * step
    return _Scale(bottom, top if top > bottom else bottom + step, step)


def _thin(points: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS points: of neighbours, the lowest and the highest stay."""
    if len(points) <= MOST_POINTS:
        return list(points)
    size = -(-2 * len(points) // MOST_POINTS)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        group = points[start : start + size]
        kept += sorted({min(group, key=lambda point: point[1]), max(group, key=lambda point: point[1])})
    return kept


def _runs(points: Iterable[Point]) -> list[list[Point]]:
    """The points between gaps."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if math.isnan(point[1]):
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _path(run: Sequence[Point]) -> str:
    if len(run) == 1:
        # A round line cap turns a line without length into a dot.
        return f"M{run[0][0]:.1f} {run[0][1]:.1f}h.01"
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)


def _area(run: Sequence[Point], index: int) -> Markup:
    path = f"{_path(run)}V{HEIGHT}H{run[0][0]:.1f}Z"
    return Markup('<path class="area s{}" d="{}"/>').format(index % 8, path)

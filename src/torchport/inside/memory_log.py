"""What held the memory: allocations and frees of a step, replayed up to the highest point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from torchport.inside.places import Place, variables
from torchport.inside.vcuda.machine import Gpu
from torchport.inside.vcuda.tags import tag_of

Row = tuple[str, str | None, Place | None, int, int]  # what, module, place, bytes, tensors

_POINTS = 120
_HOLDERS = 40


@dataclass(frozen=True, slots=True)
class Curve:
    """One card during one step: ``points`` are (event, bytes); ``holders`` is given when this is the highest yet."""

    gpu: int
    peak_bytes: int
    points: list[tuple[int, int]]
    holders: list[Row] | None


class MemoryLog:
    """Follows all cards; ``drain`` once a step."""

    def __init__(self, gpus: tuple[Gpu, ...]) -> None:
        self._gpus = gpus
        self._live: list[dict[int, list[Any]]] = [{} for _ in gpus]  # id(origin) -> [origin, bytes, tensors]
        self._base = [0] * len(gpus)
        self._highest = [0] * len(gpus)

    def classify(self, optimizer: Any, step: int, frames: Iterable[FrameType]) -> None:
        """Says of an optimizer's storages what they are, and to which module of the user's they belong."""
        if step > 3 and not any(gpu.peak > highest for gpu, highest in zip(self._gpus, self._highest, strict=True)):
            return
        modules = _modules(frames)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                module = modules.get(id(parameter))
                _mark(parameter, "parameter", module)
                gradient = torch._C.TensorBase.grad.__get__(parameter)
                if gradient is not None:
                    _mark(gradient, "gradient", module)
                for value in optimizer.state.get(parameter, {}).values():
                    if isinstance(value, torch.Tensor):
                        _mark(value, "optimizer state", module)

    def drain(self) -> Iterator[Curve]:
        """The curve of each card since the last call."""
        for index, gpu in enumerate(self._gpus):
            events, gpu.events = gpu.events, []
            current = highest = self._base[index]
            at = 0
            heights = []
            for number, (_, size) in enumerate(events, 1):
                current += size
                heights.append(current)
                if current > highest:
                    highest, at = current, number
            self._base[index] = current
            live = self._live[index]
            holders: list[Row] | None = None
            self._apply(live, events[:at])
            if highest > self._highest[index]:
                self._highest[index] = highest
                holders = _rows(live)
            self._apply(live, events[at:])
            yield Curve(index, highest, _thinned(heights), holders)

    def _apply(self, live: dict[int, list[Any]], events: list[tuple[Any, int]]) -> None:
        for origin, size in events:
            entry = live.get(id(origin))
            if entry is None:
                entry = live[id(origin)] = [origin, 0, 0]
            entry[1] += size
            entry[2] += 1 if size > 0 else -1
            if entry[1] <= 0:
                del live[id(origin)]


def _modules(frames: Iterable[FrameType]) -> dict[int, str]:
    """id(parameter) -> path of its module, for the modules that the user's running functions hold."""
    found: dict[int, str] = {}
    for frame in frames:
        for value in [*variables(frame).values(), *frame.f_globals.values()]:
            if isinstance(value, torch.nn.Module):
                for name, parameter in value.named_parameters():
                    found.setdefault(id(parameter), name.rpartition(".")[0] or type(value).__name__)
    return found


def _mark(tensor: Any, kind: str, module: str | None) -> None:
    tag = tag_of(tensor)
    if tag is not None:
        tag.origin.kind = kind
        tag.origin.module = module


def _rows(live: dict[int, list[Any]]) -> list[Row]:
    """Holders summed by kind, module and place, the largest first."""
    sums: dict[tuple[str, str | None, Place | None], list[int]] = {}
    for origin, size, count in live.values():
        # What belongs to a module is told by its name; the line that moved it or ran backward says nothing.
        place = None if origin.module else origin.place
        total = sums.setdefault((origin.kind, origin.module, place), [0, 0])
        total[0] += size
        total[1] += count
    rows = [(what, module, place, size, count) for (what, module, place), (size, count) in sums.items()]
    rows.sort(key=lambda row: -row[3])
    if len(rows) > _HOLDERS:
        rest = rows[_HOLDERS:]
        rows = [*rows[:_HOLDERS], ("other", None, None, sum(r[3] for r in rest), sum(r[4] for r in rest))]
    return rows


def _thinned(heights: list[int]) -> list[tuple[int, int]]:
    """At most some hundred points that keep every stretch's highest."""
    if not heights:
        return []
    stride = max(1, len(heights) // _POINTS)
    points = []
    for start in range(0, len(heights), stride):
        stretch = heights[start : start + stride]
        height = max(stretch)
        points.append((start + stretch.index(height), height))
    return points

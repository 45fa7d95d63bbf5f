"""Follows the record of a running rank: in which collective it is, and which one it passed last."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from torchport.record import Site

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Collective:
    """One call of a collective. ``shapes`` are of its tensors, ``sequence`` counts the calls of its group."""

    op: str
    sequence: int
    shapes: tuple[str, ...]
    dtype: str
    site: Site | None
    group: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """What all ranks of the group call this call."""
        return self.group, self.sequence


# A record is mostly steps and memory; few kinds of line matter here.
_MARKS = (b'"collective"', b'"site"', b'"header"', b'"rank"', b'"exit"')


class Follower:
    """Reads the events that a process has written since the last look. The file may not be there yet.

    ``rank``, ``pid`` and ``code`` are None until the record tells them.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.rank: int | None = None
        self.pid: int | None = None
        self.code: int | None = None
        self.inside: dict[tuple[str, int], tuple[Collective, float]] = {}  # and since when
        self.entered = 0
        self.passed: deque[Collective] = deque(maxlen=256)
        self._offset = 0
        self._sites: dict[int, Site] = {}

    def look(self, now: float) -> None:
        """Takes in what is new; a line that is not whole yet waits for the next look."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].splitlines():
            if any(mark in line for mark in _MARKS):
                self._take(json.loads(line), now)

    def _take(self, event: Json, now: float) -> None:
        kind = event.get("kind")
        if kind == "site":
            self._sites[event["id"]] = Site(event["path"], event["line"], event.get("function", ""))
        elif kind in ("header", "rank"):
            self.rank, self.pid = event.get("rank", self.rank), event.get("pid", self.pid)
        elif kind == "exit":
            self.code = event.get("code")
        elif kind == "collective":
            call = Collective(
                op=event["op"],
                sequence=event["sequence"],
                shapes=tuple(map(str, event.get("shapes") or ())),
                dtype=str(event.get("dtype") or ""),
                site=self._sites.get(event.get("site", -1)),
                group=str(event.get("group") or ""),
            )
            if event["state"] == "enter":
                self.entered += 1
                self.inside[call.key] = (call, now)
            else:
                self.passed.append(call)
                self.inside.pop(call.key, None)

    def waits_in(self) -> tuple[Collective, float] | None:
        """The oldest collective that the rank has not left, and since when."""
        return next(iter(self.inside.values()), None)

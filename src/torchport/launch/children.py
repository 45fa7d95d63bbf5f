"""Ranks that the program starts by itself, with ``mp.spawn`` say: followed by the records they leave."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from torchport.launch.activity import Activity, lives
from torchport.launch.follow import Follower
from torchport.launch.hang import GONE, RankState

# How often a new record is looked for.
_SEARCH_EVERY_S = 0.5


class Children:
    """The processes of a run folder that have joined a job of several ranks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._followers: dict[str, Follower] = {}
        self._activities: dict[str, Activity] = {}
        self._busy_at: dict[str, float] = {}
        self._searched = float("-inf")

    def look(self, now: float) -> list[RankState]:
        """What each of them is doing, by rank; empty where there are none."""
        if now - self._searched >= _SEARCH_EVERY_S:
            self._searched = now
            for path in self.folder.glob("record-spawn-*.jsonl"):
                self._followers.setdefault(str(path), Follower(str(path)))
        states = []
        for name, follower in self._followers.items():
            follower.look(now)
            if follower.entered and follower.rank is not None and follower.pid:
                states.append(self._state(name, follower, follower.rank, follower.pid, now))
        return sorted(states, key=lambda state: state.rank)

    def _state(self, path: str, follower: Follower, rank: int, pid: int, now: float) -> RankState:
        code = follower.code
        if code is None and not lives(pid):
            code = GONE
        if self._activities.setdefault(path, Activity()).busy(pid, now):
            self._busy_at[path] = now
        call, entered = follower.waits_in() or (None, now)
        return RankState(
            rank=rank,
            code=code,
            inside=call,
            waits_s=now - max(entered, self._busy_at.get(path, entered)),
            passed=tuple(follower.passed),
            entered=follower.entered,
        )

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to those that live."""
        for follower in self._followers.values():
            if follower.pid and follower.code is None and lives(follower.pid):
                try:
                    os.kill(follower.pid, number)
                except OSError:
                    pass

"""The logs of a run: those of all ranks, as they are or as they grow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RANK = re.compile(r"rank(\d+)\.log")
TRACEBACK = "Traceback (most recent call last):"
_MOST_LINES = 60


def rank_logs(place: Path) -> dict[int, Path]:
    """The ranks that have written something, in order."""
    found = {int(match[1]): path for path in (place / "logs").glob("rank*.log") if (match := RANK.fullmatch(path.name))}
    return dict(sorted(found.items()))


def last_lines(path: Path, count: int | None) -> list[str]:
    """The last lines of a log, None for all."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []
    if lines[-1] == "":
        lines.pop()
    return lines if count is None else lines[max(0, len(lines) - count) :]


def last_traceback(path: Path) -> list[str]:
    """The last traceback of a log to its end; without one its last lines."""
    lines = last_lines(path, None)
    starts = [number for number, line in enumerate(lines) if line.startswith(TRACEBACK)]
    return lines[starts[-1] :][:_MOST_LINES] if starts else lines[-20:]


def settled(line: str) -> str:
    """What a terminal shows of a line in the end: a progress bar writes over itself."""
    return next((part for part in reversed(line.split("\r")) if part), "")


@dataclass(slots=True)
class Growing:
    """Reads what ranks write as they write it, whole lines of each.

    ``from_end`` skips all but so many lines of what was there before.
    """

    place: Path
    rank: int | None = None
    from_end: int | None = None
    _offsets: dict[int, int] = field(default_factory=dict)
    _begun: bool = False

    def look(self, *, last: bool = False) -> Iterator[tuple[int, str]]:
        """(rank, line) of each line since the last look; ``last`` gives those that have no end too."""
        for rank, path in rank_logs(self.place).items():
            if self.rank is None or rank == self.rank:
                for line in self._read(rank, path, last):
                    yield rank, line
        self._begun = True

    def _read(self, rank: int, path: Path, last: bool) -> list[str]:
        try:
            with path.open("rb") as file:
                file.seek(self._offsets.get(rank, 0))
                data = file.read()
        except OSError:
            return []
        whole = len(data) if last else data.rfind(b"\n") + 1
        self._offsets[rank] = self._offsets.get(rank, 0) + whole
        lines = data[:whole].decode("utf-8", "replace").split("\n")
        if lines[-1] == "":
            lines.pop()
        if not self._begun and self.from_end is not None:
            lines = lines[max(0, len(lines) - self.from_end) :]
        return lines


def prefix(rank: int, world: int) -> str:
    """What stands before a line where there is more than one rank: as wide for all of them."""
    return f"[rank {rank:>{len(str(max(world - 1, 0)))}}] " if world > 1 else ""


def first_words(place: Path, failed: int | None, ranks: Mapping[int, Path]) -> list[str]:
    """What the rank that failed first said at its end; of torchrun itself where it was none."""
    if failed is not None and failed in ranks:
        return last_traceback(ranks[failed])
    return last_traceback(place / "logs" / "launcher.log")

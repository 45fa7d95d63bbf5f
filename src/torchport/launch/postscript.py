"""What only the supervisor saw, added to a record after its process has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchport.record import SCHEMA, Site

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One finding to add; ``fields`` may hold a Site at any depth."""

    id: str
    severity: str
    fields: Mapping[str, Any]
    site: Site | None = None


def add(path: Path, header: Mapping[str, Any], seen: Sequence[Seen], exit: Mapping[str, Any] | None = None) -> None:
    """Appends findings and, where the process left none, how it ended.

    A process that did not come to its first line gets a record with ``header``. A torn last line is taken
    away, since what follows it would make the record unreadable.
    """
    events = _read(path)
    fresh: list[Json] = []
    if not events:
        fresh.append({"kind": "header", "schema": SCHEMA, **header})
    sites = _Sites(max((event["id"] for event in events if event.get("kind") == "site"), default=0))
    last = max((event["number"] for event in events if event.get("kind") == "finding"), default=0)
    steps = sum(event.get("kind") == "step" for event in events)
    found: list[Json] = []
    for number, one in enumerate(seen, last + 1):
        event = {"kind": "finding", "number": number, "id": one.id, "severity": one.severity}
        found.append({**event, "site": sites.number(one.site), "fields": sites.plain(one.fields), "step": steps})
    fresh += [*sites.events, *found]
    if exit is not None and not any(event.get("kind") == "exit" for event in events):
        fresh.append({"kind": "exit", **exit})
    if fresh:
        with path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n" for event in fresh)


def _read(path: Path) -> list[Json]:
    """The events of a record, and a torn last line cut off the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
    return [json.loads(line) for line in data[:whole].splitlines() if line]


class _Sites:
    """Numbers places as the record does, from the first number that is free."""

    def __init__(self, last: int) -> None:
        self.events: list[Json] = []
        self._last = last
        self._known: dict[Site, int] = {}

    def number(self, site: Site | None) -> int | None:
        if site is None:
            return None
        if site not in self._known:
            self._last += 1
            self._known[site] = self._last
            self.events.append(
                {
                    "kind": "site",
                    "id": self._last,
                    "path": site.path,
                    "line": site.line,
                    "function": site.function,
                }
            )
        return self._known[site]

    def plain(self, value: Any) -> Any:
        """The value with every Site as ``{"site": number}``, which the reader turns back."""
        if isinstance(value, Site):
            return {"site": self.number(value)}
        if isinstance(value, Mapping):
            return {key: self.plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        return value

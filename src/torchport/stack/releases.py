"""What was built of torch: releases, their CUDA builds, and the packages that go with them, out of data/releases.json.

None is unknown. Each row of the file says who saw it and how well; the sources there have an evidence level, from
"binary" (the wheel was opened) down to "inferred".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("data") / "releases.json"
COMPANIONS = ("torchvision", "torchaudio", "torchtext")
CPU = "cpu"
PYTORCH = "https://download.pytorch.org/whl"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of torch. ``pypi`` is the backend of what PyPI has, by processor; ``companions`` the versions that
    go with it, oldest first; ``uploaded`` more than one day where files were replaced under the same version.
    """

    version: str
    date: str
    pythons: tuple[str, ...]
    pypi: Mapping[str, str]
    glibc: str
    companions: Mapping[str, tuple[str, ...]]
    uploaded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """One release for one backend. ``architectures`` is by processor, with None where nobody has looked; ``floor``
    and ``strict`` are the oldest drivers by CUDA's major version and by its minor one. ``seen``: the wheel is known
    to exist. ``evidence`` is how well the architectures are known.
    """

    release: Release
    backend: str
    architectures: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    ptx: str | None = None
    toolkit: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    floor: str | None = None
    strict: str | None = None
    seen: bool = True
    evidence: str | None = None
    note: str = ""

    @property
    def torch(self) -> str:
        return self.release.version

    def index(self, processor: str) -> str | None:
        """Where its wheels are, None for PyPI."""
        return None if self.release.pypi.get(processor) == self.backend else f"{PYTORCH}/{self.backend}"


@dataclass(frozen=True, slots=True)
class Companion:
    """One release of torchvision, torchaudio or torchtext. ``pure`` has no compiled part: one wheel fits all."""

    name: str
    version: str
    torch: str | None
    pythons: tuple[str, ...]
    pure: bool = False


@dataclass(frozen=True, slots=True)
class ArchitectureRule:
    """Which code runs on which card, beside the rule of the same major version; see ``architectures``."""

    excluded: Mapping[str, tuple[str, ...]]
    only_itself: tuple[str, ...]
    alias: Mapping[str, str]
    unified_from: tuple[int, ...]
    unified: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All of it. ``cards`` are beginnings of names with capability and, for boards with a processor of their own,
    that processor; ``constraints`` are (torch, requirement): what a release needs and does not say.
    """

    read: str
    releases: Mapping[str, Release]
    builds: tuple[Build, ...]
    companions: Mapping[tuple[str, str], Companion]
    cards: Mapping[str, tuple[str, ...]]
    rule: ArchitectureRule
    constraints: tuple[tuple[str, str], ...]
    last_branch: tuple[str, int]

    @property
    def tags(self) -> tuple[str, ...]:
        """All CUDA tags, oldest first."""
        return tuple(sorted({each.backend for each in self.builds if each.backend != CPU}, key=cuda_of))


def cuda_of(tag: str) -> tuple[int, ...]:
    """The CUDA of a tag: "cu126" is (12, 6), "cu102" (10, 2); "cpu" is empty."""
    digits = tag.removeprefix("cu")
    return (int(digits[:-1]), int(digits[-1])) if digits.isdigit() else ()


def numbers(version: str) -> tuple[int, ...]:
    """A version of plain numbers, for comparison: "525.60.13" is (525, 60, 13), "12.1.x" (12, 1)."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def dotted(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))


@cache
def table(path: Path = FILE) -> Table:
    """The product's own table."""
    return parse(json.loads(path.read_text(encoding="utf-8")))


def parse(document: Mapping[str, Any]) -> Table:
    """The table out of the file's content."""
    evidence = {name: row["evidence"] for name, row in document["sources"].items()}
    order = {level: place for place, level in enumerate(document["evidence"])}
    releases = {version: _release(version, row) for version, row in document["releases"].items()}
    rule = document["arch_rule"]
    last = document["last_driver"][0]
    builds = [Build(release, CPU) for release in releases.values()]
    for row in document["builds"]:
        levels = sorted((evidence[name] for name in row["source"]["archs"]), key=order.__getitem__)
        builds.append(_build(releases[row["torch"]], row, levels[0] if levels else None))
    return Table(
        read=document["read"],
        releases=releases,
        builds=tuple(builds),
        companions={
            (name, version): Companion(name, version, row["torch"], tuple(row["pythons"]), row.get("pure", False))
            for name in COMPANIONS
            for version, row in document[name].items()
        },
        cards={name: tuple(values) for name, values in document["cards"]["table"].items()},
        rule=ArchitectureRule(
            {code: tuple(cards) for code, cards in rule["excluded"].items()},
            tuple(rule["only_itself"]),
            rule["alias"],
            numbers(rule["unified_from"]),
            tuple(rule["unified"]),
        ),
        constraints=tuple((row["torch"], row["requires"]) for row in document["constraints"]),
        last_branch=(last["below"], last["branch"]),
    )


def _release(version: str, row: Mapping[str, Any]) -> Release:
    return Release(
        version=version,
        date=row["date"],
        pythons=tuple(row["pythons"]),
        pypi=row["pypi"],
        glibc=row["glibc"],
        companions={name: tuple(row.get(name, ())) for name in COMPANIONS},
        uploaded=tuple(row.get("uploaded", ())),
    )


def _build(release: Release, row: Mapping[str, Any], evidence: str | None) -> Build:
    return Build(
        release=release,
        backend=row["tag"],
        architectures={
            processor: None if row[processor] is None else tuple(row[processor]) for processor in ("x86_64", "aarch64")
        },
        ptx=row["ptx"],
        toolkit=row["toolkit"],
        cudnn=row["cudnn"],
        nccl=row["nccl"],
        floor=row["floor"],
        strict=row["strict"],
        seen=row.get("seen", True),
        evidence=evidence,
        note=row.get("note", ""),
    )

"""What a requirements file or an install command asks for, one package at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check.texts import Text

_LINE = re.compile(
    r"^[ \t]*(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]\n]*\])?[ \t]*"
    r"(?P<asked>(?:[=<>~!]=?=?[ \t]*[^\s;,\\]+[ \t]*,?[ \t]*)*)(?=[;\s\\]|$)",
    re.MULTILINE,
)
_INSTALL = re.compile(
    r"\bpip3?[ \t]+install\b(?P<words>[^\r\n;&|]*)|\b(?:conda|mamba)[ \t]+install\b(?P<more>[^\r\n;&|]*)"
)
_WORD = re.compile(
    r"(?<=\s)[\"']?(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]\s]*\])?(?P<asked>(?:[=<>~!]=?=?[^\s\"',]+,?)*)[\"']?(?=\s|$)"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A package by name, the version that is asked for, if one is, and where that stands. ``group`` is the same
    for what is installed in one go.
    """

    name: str
    version: str
    start: int
    end: int
    group: int

    @property
    def pin(self) -> tuple[int, int] | None:
        """Major and minor of an exact version."""
        match = re.fullmatch(r"={1,3}[ \t]*v?(\d+)\.(\d+)(?:[.+*][^,]*)?", self.version)
        return (int(match[1]), int(match[2])) if match else None


def packages(text: Text) -> Iterator[Asked]:
    """The packages that a file asks for."""
    if text.kind == "requirements":
        for match in _LINE.finditer(text.commands):
            yield _asked(match, 0, 0)
        return
    for group, command in enumerate(_INSTALL.finditer(text.commands)):
        part = "words" if command["words"] is not None else "more"
        for match in _WORD.finditer(command[part]):
            yield _asked(match, command.start(part), group)


def _asked(match: re.Match[str], offset: int, group: int) -> Asked:
    name, version = match["name"], match["asked"].strip().rstrip(",")
    end = match.start("asked") + len(match["asked"].rstrip().rstrip(","))
    return Asked(name.lower().replace("_", "-"), version, offset + match.start("name"), offset + end, group)

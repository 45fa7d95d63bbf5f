"""Finds versions of torchvision or torchaudio that belong to another torch.

Each torchvision is built for one torch, and says so in its requirements: pip finds no solution, or replaces the
torch that was asked for. Where the packages come from different places, the import fails with an undefined symbol.

Bad::

    torch==2.6.0
    torchvision==0.20.1
    numpy

Good::

    torch==2.6.0
    torchvision==0.21.0
    numpy

Good::

    torch==1.13.1
    torchvision==0.14.1
    torchaudio==0.13.1
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.requirements import packages
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C961",
    "torch-torchvision-mismatch",
    ERROR,
    mark("`{code}` was built for another torch than `{torch}`"),
    mark("Ask for the one that belongs to it: `{name}=={version}.*`"),
    confidence=CERTAIN,
)
FILES = ("requirements", "dockerfile", "shell")


def look(text: Text) -> Iterator[Hit]:
    """Pins of one file, or of one command, that do not go together."""
    asked = list(packages(text))
    for torch in asked:
        if torch.name not in ("torch", "pytorch") or torch.pin is None:
            continue
        for other in asked:
            wanted = _partner(other.name, torch.pin)
            if other.group == torch.group and wanted and other.pin and other.pin != wanted:
                version = f"{wanted[0]}.{wanted[1]}"
                words = {
                    "code": text.text[other.start : other.end].strip(),
                    "torch": text.text[torch.start : torch.end].strip(),
                    "name": text.text[other.start : other.start + len(other.name)],
                    "version": version,
                }
                # The first release for that torch has the patch number 0, always.
                at = other.end - len(other.version)
                change = (at, other.end, f"=={version}.0")
                yield Hit((other.start, other.end), words, (change,) if other.version.startswith("==") else ())


def _partner(name: str, torch: tuple[int, int]) -> tuple[int, int] | None:
    """The release that belongs to a torch: torchvision counts 15 further from 2.0 on, and 1 further before."""
    major, minor = torch
    if name == "torchvision":
        return (0, minor + 15) if major == 2 else (0, minor + 1) if major == 1 and minor >= 4 else None
    if name == "torchaudio":
        return (2, minor) if major == 2 else (0, minor) if major == 1 and minor >= 5 else None
    return None

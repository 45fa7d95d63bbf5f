"""A card as a user names it: its capability, and the processor of a board that has one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchport.hardware.gpus import UnknownGpu, lookup
from torchport.stack.releases import Table

_CAPABILITY = re.compile(r"(?:sm_|compute_|cc)?(\d{1,2})(?:\.(\d)|(\d))[af]?", re.IGNORECASE)
_MAKERS = ("nvidia", "geforce", "tesla", "gpu")
# Beginnings whose models have more digits. RTX 2000, 4000 and so on are boards of several generations.
_SERIES = re.compile(r"gtx(?:9|1\d)|quadrortx|rtxpro|rtxa|rtx\d0(?!00)")


@dataclass(frozen=True, slots=True)
class Card:
    """``name`` is the key of a card in our table, else as given. ``processor`` is None for a card in a slot."""

    name: str
    capability: str
    processor: str | None = None


def card(name: str, table: Table) -> Card:
    """The card of that name, by a capability such as "8.6" or "sm_86", or by the family that the name begins with.

    Raises UnknownGpu with the nearest names.
    """
    given = _CAPABILITY.fullmatch(name.strip())
    if given and (given[2] or name.lower().startswith(("sm_", "compute_", "cc"))):
        return Card(name, f"{given[1]}.{given[2] or given[3]}")
    family = _family(name, table)
    try:
        spec = lookup(name)
    except UnknownGpu:
        if family is None:
            raise
        return Card(name, family[0], family[1] if len(family) > 1 else None)
    family = family or _family(spec.key, table) or ()
    return Card(spec.key, f"{spec.capability[0]}.{spec.capability[1]}", family[1] if len(family) > 1 else None)


def _family(name: str, table: Table) -> tuple[str, ...] | None:
    """The row whose name is the first words of this one, or begins them where it is a series; the longest."""
    words = [word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _MAKERS]
    if "ada" in words:
        return ("8.9",)
    starts = ["".join(words[: count + 1]) for count in range(len(words))]
    plain = starts[-1] if starts else ""
    fitting = [
        known
        for known in table.cards
        if known in starts
        or (plain.startswith(known) and (match := _SERIES.match(plain)) is not None and match[0] == known)
    ]
    return table.cards[max(fitting, key=len)] if fitting else None

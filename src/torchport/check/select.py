"""Which rules are asked for: by id, by the beginning of an id, by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from torchport.check.rule import LoadedRule

_PREFIX = re.compile(r"C\d{0,3}")


class UnknownRule(Exception):
    """``name`` is no rule; ``nearest`` are ids and names that come near."""

    def __init__(self, name: str, nearest: Sequence[str]) -> None:
        super().__init__(name)
        self.name = name
        self.nearest = tuple(nearest)


def choose(
    every: Sequence[LoadedRule], select: Sequence[str] | None = None, ignore: Sequence[str] | None = None
) -> tuple[LoadedRule, ...]:
    """The rules that ``select`` names, None for all, without those that ``ignore`` names. Raises UnknownRule."""
    wanted = [matching(every, word) for word in select] if select is not None else [set(every)]
    left_out = [matching(every, word) for word in ignore or ()]
    chosen = set().union(*wanted) - set().union(*left_out)
    return tuple(rule for rule in every if rule in chosen)


def matching(every: Sequence[LoadedRule], word: str) -> set[LoadedRule]:
    """The rules with this id, this beginning of an id or this name. Raises UnknownRule where there is none."""
    id = word.upper()
    name = word.lower().replace("_", "-")
    found = {
        each for each in every if each.rule.name == name or (_PREFIX.fullmatch(id) and each.rule.id.startswith(id))
    }
    if not found:
        names = {each.rule.name: each.rule.name for each in every} | {
            each.rule.id.lower(): each.rule.id for each in every
        }
        close = difflib.get_close_matches(word.lower(), names, 3, 0.5)
        raise UnknownRule(word, [names[each] for each in close])
    return found

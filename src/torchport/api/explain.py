"""Explain: what an id of a finding means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from torchport.check.rule import LoadedRule
from torchport.check.rules import rules
from torchport.check.words import words
from torchport.explain.rehearsal_ids import REHEARSAL_IDS, RehearsalId
from torchport.survey import Explanation
from torchport.text import _


class NotKnown(Exception):
    """No id or name of a rule; ``nearest`` are those that come near."""

    def __init__(self, target: str, nearest: tuple[str, ...]) -> None:
        super().__init__(target)
        self.target = target
        self.nearest = nearest


def explain(target: str) -> Explanation:
    """What an id, or the name of a rule, means. Raises NotKnown."""
    known: dict[str, Callable[[], Explanation]] = {}
    for loaded in rules():
        known[loaded.rule.id.lower()] = known[loaded.rule.name] = lambda loaded=loaded: _rule(loaded)  # type: ignore[misc]
    for row in REHEARSAL_IDS.values():
        known[row.id.lower()] = known[row.slug] = lambda row=row: _rehearsal(row)  # type: ignore[misc]
    word = target.strip().lower().replace("_", "-")
    if word not in known:
        ids = {row.id.lower(): row.id for row in REHEARSAL_IDS.values()}
        ids |= {loaded.rule.id.lower(): loaded.rule.id for loaded in rules()}
        near = difflib.get_close_matches(word, known, 3, 0.6)
        raise NotKnown(target, tuple(ids.get(each, each) for each in near))
    return known[word]()


def _rule(loaded: LoadedRule) -> Explanation:
    rule, said = loaded.rule, words(loaded)
    parts = [("", paragraph) for paragraph in said.why]
    # What a finding fills in is not known here.
    parts.append((_("What to do"), re.sub(r"\{\w+\}", "…", _(rule.remedy))))
    if rule.since > (0, 0):
        parts.append((_("Holds since torch"), ".".join(map(str, rule.since))))
    if rule.until < (99, 0):
        parts.append((_("Holds before torch"), ".".join(map(str, rule.until))))
    parts.append(
        (_("To silence it"), _("`# torchport: ignore[{id}]` on the line, or alone above it").format(id=rule.id))
    )
    examples = [(_("Bad"), code) for code in said.bad] + [(_("Good"), code) for code in said.good]
    return Explanation(rule.id, rule.name, rule.severity, said.title, tuple(parts), tuple(examples))


def _rehearsal(row: RehearsalId) -> Explanation:
    parts = (("", _(row.why)), (_("A real card"), _(row.cuda)), (_("What to do"), _(row.fix)))
    return Explanation(row.id, row.slug, row.severity, _(row.title), parts)

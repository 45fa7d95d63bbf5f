"""Rule: what a kind of fault is called, how bad it is, and for which torch it holds; Hit: one place where it shows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchport.finding import Confidence, Severity

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
CERTAIN, LIKELY, POSSIBLE = Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE

Span = tuple[int, int]
Change = tuple[int, int, str]  # from, to, text: offsets into the source


@dataclass(frozen=True, slots=True)
class Rule:
    """The ``META`` of a rule's module. ``message`` and ``remedy`` are English, marked for translation; names in
    braces are filled in from a hit. ``since`` and ``until`` are the torch versions, the second excluded, for which
    the rule holds.
    """

    id: str
    name: str
    severity: Severity
    message: str
    remedy: str
    confidence: Confidence = LIKELY
    since: tuple[int, int] = (0, 0)
    until: tuple[int, int] = (99, 0)


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule's fault shows: a node or a span. ``changes`` repair it; ``safe`` says that they cannot
    change what is computed; ``needs`` are modules that the new text names, which are imported where they are not.
    ``seen`` are other places that belong to it: (offset, words).
    """

    at: ast.AST | Span
    words: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    safe: bool = False
    needs: tuple[str, ...] = ()
    seen: tuple[tuple[int, str], ...] = ()
    severity: Severity | None = None
    confidence: Confidence | None = None


Look = Callable[[Any], Iterator[Hit]]  # of a Source, or of a Text where FILES says so


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """A rule with the function that looks for it and the docstring of its module."""

    rule: Rule
    look: Look
    text: str
    files: frozenset[str]

    def holds_for(self, torch: tuple[int, int] | None) -> bool:
        """Whether the rule has a meaning for that torch; a project that names none is taken to use the newest."""
        version = torch or (98, 0)
        return self.rule.since <= version < self.rule.until

"""Event: two devices meet in the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torchport.check.flow.values import Module, Origin, Tensor, Tree
from torchport.check.source import Source


@dataclass(frozen=True, slots=True)
class Event:
    """``kind`` names the rule. ``origin`` is where what stands on the wrong device was made, ``node`` of ``source``
    the place where it meets the other; ``other`` is the text of that, ``role`` what the call takes it for.
    """

    kind: str
    source: Source
    node: ast.AST
    origin: Origin | None
    other: str = ""
    name: str = ""


@dataclass(slots=True)
class Log:
    """The events of one analysis, each fault once."""

    events: dict[tuple[str, int], Event] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        key = (event.kind, id(event.origin.node) if event.origin else id(event.node))
        self.events.setdefault(key, event)


def kind_of(offender: Tensor | Tree | Module, role: str) -> str:
    """The rule that is about a host tensor in that role."""
    how = offender.origin.how if isinstance(offender, (Tensor, Tree)) and offender.origin else ""
    if how == "batch":
        return "untransferred-label" if role == "label" else "untransferred-batch"
    if how == "attribute":
        return "tensor-attr-not-buffer"
    if how == "weight" or role == "weight":
        return "loss-weight-device"
    if role == "hidden":
        return "hidden-state-on-cpu"
    if role == "mask":
        return "mask-created-on-cpu"
    return "factory-without-device"

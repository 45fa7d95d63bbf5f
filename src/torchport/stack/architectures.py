"""Which card runs which machine code: torch's own rule, DEVICE_REQUIREMENT in torch/cuda/__init__.py."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from torchport.stack.releases import ArchitectureRule, numbers


class Code(Enum):
    """How a wheel gets onto a card: as machine code, by compiling PTX at the first start, or not."""

    NATIVE = "native"
    PTX = "ptx"
    NONE = "none"


def code_for(
    capability: str, architectures: Sequence[str], ptx: str | None, toolkit: Sequence[int], rule: ArchitectureRule
) -> Code:
    """What a wheel with code for these architectures has for a card of that capability.

    Code of X.Y runs on cards of the same X with a minor version of at least Y. Jetson boards are apart: some run
    their own code only, and others' code leaves them out, until ``rule.unified_from`` of the toolkit for some of
    them. PTX of X.Y runs on every card from X.Y on.
    """
    capability = rule.alias.get(capability, capability)
    if any(_runs(capability, rule.alias.get(code, code), tuple(toolkit), rule) for code in architectures):
        return Code.NATIVE
    if ptx is not None and numbers(ptx) <= numbers(capability):
        return Code.PTX
    return Code.NONE


def _runs(capability: str, code: str, toolkit: tuple[int, ...], rule: ArchitectureRule) -> bool:
    if capability == code:
        return True
    card, built = numbers(capability), numbers(code)
    if card[0] != built[0] or card[1] < built[1]:
        return False
    if capability in rule.unified and toolkit >= rule.unified_from:
        return True
    return code not in rule.only_itself and capability not in (*rule.excluded.get(code, ()), *rule.only_itself)

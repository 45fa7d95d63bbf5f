"""Cards and who has them, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from torchport.facts import Card, Holder
from torchport.report.printable import printable
from torchport.report.terminal import QUIET, line, set_in_lines
from torchport.text import _, binary_size


def busy(wanted: int, cards: Sequence[Card], held: Mapping[int, str]) -> str:
    """Why a run does not get its cards: each one, and who has it."""
    free = sum(not held.get(card.index) for card in cards)
    lines = [_("--gpus {wanted}: {free} of {count} cards are free").format(wanted=wanted, free=free, count=len(cards))]
    for card in cards:
        reason = held.get(card.index)
        lines.append(f"    {card.index}  {_size(card)}  {printable(reason or _('free'))}")
    return "\n".join([*lines, _("--wait waits until they are free, --share takes them all the same")])


def render(cards: Sequence[Card], *, width: int = 100, color: bool = False) -> str:
    return set_in_lines(_lines(cards), width=width, color=color)


def _lines(cards: Sequence[Card]) -> Iterator[Text]:
    yield line((_("cards"), "bold"))
    for card in cards:
        yield line((f"  {card.index}  {card.name}  {_size(card)}", ""))
        if card.holders is None:
            yield line(("     " + _("the driver does not tell who uses it"), QUIET))
        for holder in card.holders or ():
            yield line((f"     {_who(holder)}", ""))


def _who(holder: Holder) -> str:
    size = binary_size(holder.memory_bytes) if holder.memory_bytes is not None else ""
    parts = (f"pid {holder.pid}" if holder.pid is not None else "", holder.user or "", size, holder.command or "")
    return "  ".join(part for part in parts if part)


def _size(card: Card) -> str:
    if card.memory_bytes is None or card.used_bytes is None:
        return "-"
    return _("{used} of {size} in use").format(used=binary_size(card.used_bytes), size=binary_size(card.memory_bytes))

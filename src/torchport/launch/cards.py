"""Cards of a machine that several people use: which are free, who has the others, and taking some for one run.

A card is free when nobody computes on it and no run of torchport holds its lock. A lock is a file a card in a folder
that all users share. It is held by the open file, which the job inherits: it ends with the last process that has it,
however that one ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchport.facts import Card, DriverFacts, Holder
from torchport.launch import tree
from torchport.process import ProgramTimeout, run
from torchport.text import _

LOCKS = Path("/tmp/torchport-cards")
# A driver answers in milliseconds, but for its first call, for which it may have to wake the cards.
ANSWER_WITHIN_S = 20.0
# A card that nobody uses has some megabytes in use, one with a CUDA context of another container some hundred.
IDLE_BYTES = 256 << 20
LOOK_EVERY_S = 2.0


class CardsUnknown(Exception):
    """The driver cannot be asked."""


class CardsMissing(Exception):
    """The machine has fewer cards than are wanted, or shows fewer."""


class CardsBusy(Exception):
    """Fewer cards are free than are wanted. ``cards`` are all that may be used, ``held`` says by index who has one."""

    def __init__(self, wanted: int, cards: Sequence[Card], held: Mapping[int, str]) -> None:
        super().__init__(wanted, cards, held)
        self.wanted, self.cards, self.held = wanted, tuple(cards), dict(held)


@dataclass(frozen=True, slots=True)
class Taken:
    """Cards for a run, by index, and the open files that lock them."""

    indices: tuple[int, ...]
    locks: tuple[int, ...]


def look() -> tuple[DriverFacts | None, tuple[Card, ...]]:
    """The driver and all cards; (None, ()) on a machine without. Raises CardsUnknown."""
    program = Path(__file__).with_name("nvml.py")
    try:
        output = run([sys.executable, "-I", str(program)], timeout_s=ANSWER_WITHIN_S)
    except ProgramTimeout as error:
        raise CardsUnknown(
            _("NVIDIA's driver does not answer within {seconds:g} s: nvidia-smi will hang too").format(
                seconds=ANSWER_WITHIN_S
            )
        ) from error
    try:
        answer = json.loads(output.stdout)
    except ValueError as error:
        words = output.stderr.strip().splitlines()[-1:] or [f"exit code {output.code}"]
        raise CardsUnknown(_("NVIDIA's driver cannot be asked: {words}").format(words=words[0])) from error
    if answer["error"]:
        raise CardsUnknown(_("NVIDIA's driver cannot be asked: {words}").format(words=answer["error"]))
    return read(answer)


def read(answer: Mapping[str, Any], proc: Path = tree.PROC) -> tuple[DriverFacts | None, tuple[Card, ...]]:
    """What ``nvml.py`` has printed, as nouns, with what ``/proc`` tells of the processes."""
    cuda = answer["cuda"]
    driver = DriverFacts(answer["version"], (cuda // 1000, cuda % 1000 // 10) if cuda else None)
    cards = [
        Card(
            **{name: row[name] for name in ("index", "uuid", "name", "memory_bytes", "mig", "prohibited")},
            used_bytes=_used(row),
            capability=(row["capability"][0], row["capability"][1]) if row["capability"] else None,
            holders=None if row["holders"] is None else tuple(_holder(pid, used, proc) for pid, used in row["holders"]),
        )
        for row in answer["cards"]
    ]
    return (driver if answer["version"] or cards else None), tuple(cards)


def _used(row: Mapping[str, Any]) -> int | None:
    """Memory in use, without that of processes which only draw on a screen."""
    if row["used_bytes"] is None:
        return None
    drawn: int = sum(used or 0 for _pid, used in row["shown"] or ())
    return max(0, int(row["used_bytes"]) - drawn)


def _holder(pid: int, used: int | None, proc: Path) -> Holder:
    words = tree.command(pid, proc)
    return Holder(pid, used, tree.owner(pid, proc), " ".join(words) if words else None)


def allowed(cards: Sequence[Card], visible: str | None) -> tuple[Card, ...]:
    """The cards that CUDA_VISIBLE_DEVICES leaves, in its order: CUDA stops at the first that it does not know."""
    if visible is None:
        return tuple(cards)
    found: list[Card] = []
    for word in filter(None, visible.split(",")):
        name = word.strip()
        match = [card for card in cards if name == str(card.index) or (name and card.uuid.startswith(name))]
        if len(match) != 1:
            break
        found.append(match[0])
    return tuple(found)


def why_busy(card: Card) -> str | None:
    """Who or what keeps a card from being free, None for a free one."""
    if card.prohibited:
        return _("its owner allows no computing on it (compute mode: prohibited)")
    if card.mig:
        return _("it is divided into MIG instances: name one in CUDA_VISIBLE_DEVICES, without --gpus")
    if card.holders:
        return "; ".join(map(_who, card.holders))
    if card.used_bytes is not None and card.used_bytes > IDLE_BYTES:
        return _("its memory is in use by somebody who cannot be seen from here")
    return None


def _who(holder: Holder) -> str:
    parts = [_("pid {pid}").format(pid=holder.pid) if holder.pid is not None else None, holder.user, holder.command]
    return ", ".join(part for part in parts if part)


def choose(cards: Sequence[Card], count: int, *, share: bool = False) -> tuple[int, ...]:
    """The cards, by index, that a run of ``count`` gets: free ones; with ``share`` the least used, whoever has them.

    Raises CardsBusy with who has which.
    """
    busy = {card.index: reason for card in cards if (reason := why_busy(card))}
    good = [card for card in cards if card.index not in busy or (share and not card.prohibited and not card.mig)]
    if len(good) < count:
        raise CardsBusy(count, cards, busy)
    good.sort(key=lambda card: (card.index in busy, card.used_bytes or 0))
    return tuple(sorted(card.index for card in good[:count]))


def take(cards: Sequence[Card], count: int, *, run: str, share: bool = False, folder: Path = LOCKS) -> Taken:
    """Chooses cards and locks them. Raises CardsBusy with who has which."""
    left = list(cards)
    locks: dict[int, int] = {}
    held: dict[int, str] = {}
    while len(locks) < count:
        try:
            wanted = set(choose(left, count, share=share)) - set(locks)
        except CardsBusy as error:
            for held_lock in locks.values():
                os.close(held_lock)
            raise CardsBusy(count, cards, {**error.held, **held}) from error
        for card in [card for card in left if card.index in wanted]:
            lock = _lock(folder, card.uuid, run, share)
            if isinstance(lock, int):
                locks[card.index] = lock
            else:
                held[card.index] = lock
                left.remove(card)
    return Taken(tuple(sorted(locks)), tuple(lock for _index, lock in sorted(locks.items())))


def wait_for(count: int, *, environ: Mapping[str, str], run: str, folder: Path = LOCKS) -> Taken:
    """Takes ``count`` free cards as soon as there are so many."""
    while True:
        with suppress(CardsBusy, CardsUnknown):
            cards = allowed(look()[1], environ.get("CUDA_VISIBLE_DEVICES"))
            return take(cards, count, run=run, folder=folder)
        time.sleep(LOOK_EVERY_S)


def peek(cards: Sequence[Card], folder: Path = LOCKS) -> tuple[Card, ...]:
    """The cards, with the runs that hold their locks beside those that already compute."""
    seen = []
    for card in cards:
        lock = _lock(folder, card.uuid, None, False)
        if isinstance(lock, int):
            os.close(lock)
        elif not card.holders:
            seen.append(replace(card, holders=(_reader(folder / f"{card.uuid}.lock"),)))
            continue
        seen.append(card)
    return tuple(seen)


def _lock(folder: Path, name: str, run: str | None, share: bool) -> int | str:
    """The open lock of a card, or who has it. One who shares gets it whoever else has it."""
    path = _shared_folder(folder) / f"{name}.lock"
    # Without O_CREAT first: in a folder that everybody may write, systems refuse it for another user's file.
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with suppress(OSError):
            os.fchmod(lock, 0o666)
    if not _locked(lock, fcntl.LOCK_SH if share or run is None else fcntl.LOCK_EX) and not share:
        os.close(lock)
        return _who(_reader(path))
    if run is not None:
        note = {"user": tree.user_name(os.getuid()), "run": run}
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(note).encode(), 0)
    return lock


def _locked(lock: int, kind: int) -> bool:
    """Locks an open file if nobody else has; one who only looks is gone a moment later."""
    for _attempt in range(3):
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.02)
    return False


def _reader(path: Path) -> Holder:
    """Who says in a lock that it is theirs. Everybody may write there: it is shown and never trusted."""
    try:
        note = json.loads(path.read_bytes()[:4096])
        return Holder(None, None, str(note["user"]), str(note["run"]))
    except (OSError, ValueError, LookupError, TypeError):
        return Holder(None, None, None, _("a run of torchport"))


def _shared_folder(folder: Path) -> Path:
    """The folder of the locks, for all users. Raises CardsUnknown for one that somebody has laid as a trap."""
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise CardsUnknown(_("{path} is not a folder: remove it").format(path=folder))
    return folder

"""Migrated: what a migration changed, why, and the proof that the project computes what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchport.finding import Finding
from torchport.record import Record


@dataclass(frozen=True, slots=True)
class Proof:
    """Two loss traces: ``first`` is the first loss that differs by a bit, None where all are the same."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def first(self) -> int | None:
        for index, (left, right) in enumerate(zip(self.before, self.after, strict=False)):
            if left != right and not (left != left and right != right):
                return index
        return None if len(self.before) == len(self.after) else min(len(self.before), len(self.after))

    @property
    def same(self) -> bool:
        return self.first is None

    def within(self, tolerance: float) -> bool:
        """Whether both have as many losses, none further apart than that; 0 is bit for bit."""
        return self.same or (0 < len(self.before) == len(self.after) and self.furthest <= tolerance)

    @property
    def furthest(self) -> float:
        """The largest relative difference of two losses."""
        pairs = zip(self.before, self.after, strict=False)
        return max((abs(a - b) / max(abs(a), abs(b), 1e-30) for a, b in pairs), default=0.0)


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of a recipe. ``reason`` says why it was left out, and is empty where it was applied.

    ``on_gpu`` and ``on_cpu`` are the losses before and after it, ``proof`` what only this recipe promises, a resume or
    several ranks, and ``note`` what these do not show.
    """

    recipe: str
    reason: str = ""
    on_gpu: Proof | None = None
    on_cpu: Proof | None = None
    proof: Proof | None = None
    note: str = ""

    @property
    def applied(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Migrated:
    """One migration as users see it.

    ``confirmed`` are faults that reading found and the run showed, ``unreached`` those that the run did not come to,
    ``only_run`` those that only the run found; ``left`` is what is for a person. ``draws`` are (place, operator) of
    random numbers that a real card draws from its own generator. ``recipes`` are those asked for. ``by_rehearsal`` says
    that the losses on the GPUs are measured by a rehearsal of the project before, and not by its run on the CPU.
    ``backup`` is the folder with the files as they were. ``used_gpu`` says whether the result computes anything on a
    GPU. ``repaired`` names what was repaired: the id of a finding or the name of a repair, and the place.
    """

    entry: str
    patch: str
    patch_path: str
    applied: bool
    backup: str | None
    clean: bool
    works_on_cpu: bool
    gave_device: bool
    used_gpu: bool
    confirmed: tuple[Finding, ...]
    unreached: tuple[Finding, ...]
    only_run: tuple[Finding, ...]
    left: tuple[Finding, ...]
    refused: tuple[str, ...]
    repaired: tuple[str, ...]
    on_gpu: Proof | None
    on_cpu: Proof | None
    draws: tuple[tuple[str, str], ...]
    recipes: tuple[Adopted, ...]
    rounds: int
    gpus: int
    ranks: int
    by_rehearsal: bool
    failure: str  # the error with which the program itself ends, empty for none
    exit_code: int
    seconds: float


def losses(records: Sequence[Record]) -> tuple[float, ...]:
    """The losses of all ranks, rank by rank."""
    return tuple(loss.value for record in records for loss in record.losses)

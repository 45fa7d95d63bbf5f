"""Recipe: an improvement that the user asks for by name, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchport.check.rule import Change
from torchport.migrate.tree import Tree
from torchport.migrated import Proof
from torchport.plan import Run

# The changes of each file.
Variant = Mapping[str, list[Change]]


class Unsuited(Exception):
    """The project has no place for a recipe; the text says why."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to run the copy: ``plain`` on the CPU, else on virtual GPUs, ``strict`` or healing.

    ``ranks`` processes of a launcher, 0 for none; ``env`` and ``words`` are added to the user's environment and
    command, ``steps`` takes the place of the user's. With ``keep`` checkpoints of the run before are still there.
    """

    plain: bool = False
    strict: bool = False
    ranks: int = 0
    env: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    steps: int | None = None
    keep: bool = False


Runner = Callable[[Path, Launch], Run]


@dataclass(frozen=True, slots=True)
class Recipe:
    """``variants`` gives the changes for a tree and its entry, best first: the first that holds is kept. Raises
    Unsuited.

    ``tolerance`` is the largest relative difference of a loss on the GPU, 0 for bit for bit; on the CPU the losses are
    always the same. ``prove`` runs what only this recipe promises, a resume or several ranks, and gives the two traces
    that have to agree within ``proof_tolerance``. ``needs`` is a package that the result imports.
    """

    name: str
    summary: str
    variants: Callable[[Tree, str], Iterator[Variant]]
    tolerance: float = 0.0
    prove: Callable[[Tree, Runner], Proof] | None = None
    proof_tolerance: float = 0.0
    needs: str = ""

"""Finds a checkpoint with the state of the CPU's random numbers alone.

Dropout and noise on a GPU come from the GPU's own generator: a resumed run draws others than the one that went on.

Bad::

    import torch

    torch.save({"rng": torch.get_rng_state()}, "last.pt")

Good::

    import torch

    torch.save({"rng": torch.get_rng_state(), "cuda_rng": torch.cuda.get_rng_state_all()}, "last.pt")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.saving import saves
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C704",
    "cuda-rng-not-saved",
    WARNING,
    mark("only the state of the CPU's random numbers is kept; the GPU draws from its own"),
    mark("Keep `torch.cuda.get_rng_state_all()` as well, and set it again with `torch.cuda.set_rng_state_all()`"),
)
_ON_GPU = (
    "torch.cuda.get_rng_state",
    "torch.cuda.get_rng_state_all",
    "torch.cuda.random.get_rng_state_all",
    "torch.random.fork_rng",
)


def look(source: Source) -> Iterator[Hit]:
    """In files that save something and never ask a GPU for its state."""
    if saves(source) and not source.calls(*_ON_GPU):
        for call in source.calls("torch.get_rng_state", "torch.random.get_rng_state"):
            yield Hit(call)

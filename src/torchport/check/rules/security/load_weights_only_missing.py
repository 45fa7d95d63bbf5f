"""Finds ``torch.load`` that runs whatever code a file holds.

Before torch 2.6 that is what it does unless ``weights_only=True`` says otherwise. Whether a file has nothing but
tensors is not in the source, so this is never repaired.

Bad::

    import torch

    state = torch.load("model.pt", map_location="cpu")

Good::

    import torch

    state = torch.load("model.pt", map_location="cpu", weights_only=True)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.saving import loads
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C830",
    "load-weights-only-missing",
    INFO,
    mark("before torch 2.6 this load runs whatever code the file holds"),
    mark("For files with tensors alone, `weights_only=True`; for others, only those that you made"),
    confidence=CERTAIN,
    since=(1, 13),
    until=(2, 6),
)


def look(source: Source) -> Iterator[Hit]:
    """Loads that do not say either."""
    for call in loads(source):
        if argument(call, "weights_only") is None and argument(call, "pickle_module", 2) is None and not is_open(call):
            yield Hit(call)

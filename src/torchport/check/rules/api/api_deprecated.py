"""Finds functions that torch still has and is going to remove.

Each call warns, and a newer torch, such as the one in a ready image for GPUs, may have them no more.

Bad::

    import torch

    a = torch.eye(3)
    lower = torch.cholesky(a)
    product = torch.chain_matmul(a, a, a)

Good::

    import torch

    a = torch.eye(3)
    lower = torch.linalg.cholesky(a)
    product = torch.linalg.multi_dot([a, a, a])
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.apis import uses
from torchport.check.rules.dated import DEPRECATED
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C931",
    "api-deprecated",
    INFO,
    mark("`{name}` is deprecated since torch {since}"),
    mark("Use instead: {instead}"),
    confidence=CERTAIN,
    since=(2, 3),
)


def look(source: Source) -> Iterator[Hit]:
    """What the table calls deprecated."""
    yield from uses(source, DEPRECATED)

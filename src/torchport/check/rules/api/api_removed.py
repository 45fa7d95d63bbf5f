"""Finds functions and modules that torch, torchvision and torchtext no longer have.

The program fails there: with an ImportError at once, or with an AttributeError or RuntimeError when it comes to it.

Bad::

    import torch

    a = torch.eye(3)
    rank = torch.matrix_rank(a)

    torch.set_deterministic(True)

Good::

    import torch

    a = torch.eye(3)
    rank = torch.linalg.matrix_rank(a)

    torch.use_deterministic_algorithms(True)

Bad::

    import torch
    from torch._six import string_classes

    values, vectors = torch.symeig(torch.eye(3), eigenvectors=True)

Good::

    import torch

    values, vectors = torch.linalg.eigh(torch.eye(3), UPLO="U")
    spectrum = torch.fft.rfft(values)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.apis import uses
from torchport.check.rules.dated import REMOVED
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C930",
    "api-removed",
    ERROR,
    mark("`{name}` is gone since the release of torch {gone}"),
    mark("Use instead: {instead}"),
    confidence=CERTAIN,
    since=(2, 2),
)


def look(source: Source) -> Iterator[Hit]:
    """What the table calls removed."""
    yield from uses(source, REMOVED)

"""Finds functions of torch under the name that they had before.

The old name warns where it is left at all; the new one does the same.

Bad::

    import torch.nn.functional as F
    import torch

    x = torch.ones(3)
    y = F.sigmoid(x)
    torch.nn.utils.clip_grad_norm([x], 1.0)

Good::

    import torch.nn.functional as F
    import torch

    x = torch.ones(3)
    y = torch.sigmoid(x)
    torch.nn.utils.clip_grad_norm_([x], 1.0)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.apis import uses
from torchport.check.rules.dated import RENAMED
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C932",
    "api-renamed",
    INFO,
    mark("`{name}` has another name since torch {since}"),
    mark("Write `{instead}`"),
    confidence=CERTAIN,
    since=(1, 7),
)


def look(source: Source) -> Iterator[Hit]:
    """What the table calls renamed."""
    yield from uses(source, RENAMED)

"""Finds ``torch.meshgrid`` that does not say in which order.

It takes rows first, NumPy columns first, and a later torch is going to follow NumPy: torch warns at each call.

Bad::

    import torch

    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4))

Good::

    import torch

    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source, argument
from torchport.text import mark

META = Rule(
    "C948",
    "meshgrid-indexing",
    INFO,
    mark("this `meshgrid` does not say `indexing`, whose default is going to change"),
    mark('Add `indexing="ij"`, which is what it does now'),
    confidence=CERTAIN,
    since=(1, 10),
)


def look(source: Source) -> Iterator[Hit]:
    """Calls without the keyword and without ``**kwargs``, which may hold it."""
    for call in source.calls("torch.meshgrid"):
        if argument(call, "indexing") is None and all(each.arg for each in call.keywords):
            yield Hit(call, changes=(add_argument(source, call, 'indexing="ij"'),), safe=True)

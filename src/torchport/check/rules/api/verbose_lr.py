"""Finds ``verbose=`` for a scheduler of the learning rate.

The parameter was deprecated in torch 2.2 and is gone: the call raises a TypeError.

Bad::

    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=3, verbose=True)

Good::

    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=3)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_argument
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C936",
    "verbose-lr",
    ERROR,
    mark("`{name}` has no parameter `verbose` any more: it raises a TypeError"),
    mark("Leave it out; print `scheduler.get_last_lr()` where the rate is of interest"),
    confidence=CERTAIN,
    since=(2, 7),
)


def look(source: Source) -> Iterator[Hit]:
    """Schedulers of torch only."""
    for given in source.nodes(ast.keyword):
        call = source.parent(given)
        if given.arg != "verbose" or not isinstance(call, ast.Call):
            continue
        name = source.name(call.func)
        if name.startswith("torch.optim.lr_scheduler."):
            words = {"name": name.rsplit(".", 1)[-1]}
            yield Hit(given, words, (remove_argument(source, call, given),), safe=True)

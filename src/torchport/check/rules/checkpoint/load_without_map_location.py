"""Finds ``torch.load`` without ``map_location``.

It puts every tensor where it was saved. A checkpoint that a GPU wrote cannot be read where there is none; one from
``cuda:3`` fails on a machine with two GPUs; and of several ranks, each loads everything onto the first GPU.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    model.load_state_dict(torch.load("model.pt"))

    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))

    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import INFO, LIKELY, POSSIBLE, WARNING, Hit, Rule
from torchport.check.rules.kinds import is_optimizer
from torchport.check.rules.saving import goes_into, in_memory, is_model, loads, restores
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C801",
    "load-without-map-location",
    WARNING,
    mark("`{code}` puts tensors on the device that they were saved from; where it is missing, the load fails"),
    mark('Say where: `map_location=device`, or `map_location="cpu"` where `load_state_dict()` copies them anyway'),
)


def look(source: Source) -> Iterator[Hit]:
    """What ends in ``load_state_dict`` is copied to where the model is: for that, the CPU is the right place."""
    for call in loads(source):
        if argument(call, "map_location", 1) is not None or is_open(call) or in_memory(source, argument(call, "f", 0)):
            continue
        words = {"code": source.code(call)}
        if not restores(source, call):
            yield Hit(call, words, severity=INFO, confidence=POSSIBLE)
            continue
        taker = goes_into(source, call)
        safe = taker is not None and _copies(source, taker)
        yield Hit(call, words, (add_argument(source, call, 'map_location="cpu"'),), safe=safe, confidence=LIKELY)


def _copies(source: Source, taker: ast.Call) -> bool:
    """Whether a ``load_state_dict`` copies into tensors that are there already."""
    receiver = getattr(taker.func, "value", None)
    if receiver is None or argument(taker, "assign") is not None:
        return False
    return is_model(source, receiver) or is_optimizer(source, receiver)

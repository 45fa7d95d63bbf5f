"""Finds gradients that are filled with zeros instead of dropped.

Since torch 2.0 ``zero_grad`` drops them, which saves a write of the whole gradient per step, and its memory between
the steps.

Bad::

    import torch


    def step(optimizer, loss):
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()

Good::

    import torch


    def step(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C606",
    "set-to-none-false",
    INFO,
    mark("`{code}` writes zeros into every gradient instead of dropping it"),
    mark("Leave the argument out, unless something reads the zeros"),
    confidence=CERTAIN,
    since=(2, 0),
)


def look(source: Source) -> Iterator[Hit]:
    """``zero_grad(set_to_none=False)``."""
    for call in source.calls(".zero_grad"):
        for keyword in call.keywords:
            if keyword.arg == "set_to_none" and constant(keyword.value) is False:
                yield Hit(call, {"code": source.code(call)}, (changes.remove_argument(source, call, keyword),))

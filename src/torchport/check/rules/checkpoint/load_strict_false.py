"""Finds ``load_state_dict(…, strict=False)`` whose answer nobody reads.

Keys that do not fit are passed over without a word: with another prefix in the file, ``module.`` say, nothing is
loaded at all, and training goes on from random weights.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    model.load_state_dict(torch.load("model.pt", map_location="cpu"), strict=False)

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    answer = model.load_state_dict(torch.load("model.pt", map_location="cpu"), strict=False)
    print(answer.missing_keys, answer.unexpected_keys)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C809",
    "load-strict-false",
    INFO,
    mark("with `strict=False`, keys that do not fit are passed over, and nobody reads which"),
    mark("Leave `strict=False` out, or look at the `missing_keys` and `unexpected_keys` that it gives back"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Statements that are nothing but the call."""
    for call in source.calls(".load_state_dict"):
        if isinstance(source.parent(call), ast.Expr) and constant(argument(call, "strict", 1)) is False:
            yield Hit(call)

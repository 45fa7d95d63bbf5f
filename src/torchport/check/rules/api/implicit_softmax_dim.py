"""Finds a softmax that does not say over which dimension.

Torch then chooses by the number of dimensions: over the first where there are one or three, else over the second.
With sequences in a batch that is the batch, and the result is wrong without a word.

Bad::

    import torch
    import torch.nn.functional as F
    from torch import nn

    scores = torch.randn(2, 5, 3)
    weights = F.softmax(scores)
    layer = nn.LogSoftmax()

Good::

    import torch
    import torch.nn.functional as F
    from torch import nn

    scores = torch.randn(2, 5, 3)
    weights = F.softmax(scores, dim=-1)
    layer = nn.LogSoftmax(dim=1)
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C938",
    "implicit-softmax-dim",
    WARNING,
    mark("`{code}` does not say over which dimension: torch chooses by their number, and warns"),
    mark("Give it `dim`, `-1` for the last"),
    confidence=CERTAIN,
)
_AT = {
    "torch.nn.functional.softmax": 1,
    "torch.nn.functional.log_softmax": 1,
    "torch.nn.functional.softmin": 1,
    "torch.nn.Softmax": 0,
    "torch.nn.LogSoftmax": 0,
    "torch.nn.Softmin": 0,
}


def look(source: Source) -> Iterator[Hit]:
    """The functions and the layers; the methods of tensors need a dimension anyway."""
    for call in source.calls(*_AT):
        if argument(call, "dim", _AT[source.name(call.func)]) is None and not is_open(call):
            yield Hit(call, {"code": source.code(call)})

"""Finds lengths of packed sequences on the GPU.

``pack_padded_sequence`` reads the lengths on the host, and refuses those of the GPU.

Bad::

    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    x = torch.randn(2, 5, 8, device="cuda")
    lengths = torch.tensor([5, 3], device="cuda")
    packed = pack_padded_sequence(x, lengths, batch_first=True)

Good::

    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    x = torch.randn(2, 5, 8, device="cuda")
    lengths = torch.tensor([5, 3], device="cuda")
    packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import meetings
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C112",
    "lengths-must-be-cpu",
    ERROR,
    mark("the lengths `{code}` are on the GPU, and `pack_padded_sequence` wants them on the CPU"),
    mark("Keep them on the CPU, or give `.cpu()` of them"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Lengths that have been moved."""
    for _event, node in meetings(source, META.name):
        end = source.span(node)[1]
        simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        yield Hit(node, {"code": source.code(node)}, ((end, end, ".cpu()"),) if simple else (), safe=True)

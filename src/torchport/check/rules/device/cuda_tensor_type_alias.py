"""Finds a name that stands for ``torch.cuda.FloatTensor`` or ``torch.FloatTensor``, whichever there is.

What such a type makes is always on the current GPU: on a machine with several the tensors of another process or of
a model on ``cuda:1`` meet it there and fail. It fixes the precision as well, so that mixed precision cannot.

Bad::

    import torch

    cuda = torch.cuda.is_available()
    Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
    valid = Tensor(8, 1).fill_(1.0)

Good::

    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    valid = torch.ones(8, 1, device=device)

Bad::

    import torch

    dtype = torch.cuda.FloatTensor
    x = torch.randn(8, 2).type(dtype)

Good::

    import torch

    Tensor = torch.FloatTensor
    x = torch.randn(8, 2).type(Tensor)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.moves import is_cuda_type
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C121",
    "cuda-tensor-type-alias",
    WARNING,
    mark("`{name}` is a tensor type of the current GPU: what it makes cannot be put on another device"),
    mark("Choose a `device = torch.device(…)` instead, and make tensors with `torch.zeros(…, device=device)`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Assignments, arguments' defaults left out, whose value is such a type in one of its branches."""
    for node in source.nodes(ast.Assign):
        branches = [node.value]
        if isinstance(node.value, ast.IfExp):
            branches = [node.value.body, node.value.orelse]
        if any(isinstance(each, ast.Attribute) and is_cuda_type(source.name(each)) for each in branches):
            yield Hit(node, {"name": source.code(node.targets[0])})

"""Finds a tensor on the GPU that is read as a NumPy array.

NumPy reads the memory of the host; a tensor on the GPU has none.

Bad::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2).to(device)
    out = model(torch.ones(4, 8, device=device))
    print(out.detach().numpy())

Good::

    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(8, 2).to(device)
    out = model(torch.ones(4, 8, device=device))
    print(out.detach().cpu().numpy())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import meetings
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C201",
    "numpy-on-cuda",
    ERROR,
    mark("`{name}` is on the GPU, and NumPy cannot read it there"),
    mark("Bring it back first: `.cpu()`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """``.numpy()`` and NumPy functions on tensors of the GPU."""
    for event, node in meetings(source, META.name):
        if event.source is not source:
            continue
        read = _read(node)
        end = source.span(read)[1]
        simple = isinstance(read, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        yield Hit(node, {"name": event.name}, ((end, end, ".cpu()"),) if simple else (), safe=True)


def _read(node: ast.AST) -> ast.AST:
    """The tensor: what ``.numpy()`` is called on, or the argument of a NumPy function."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="numpy")):
            return owner
    return node

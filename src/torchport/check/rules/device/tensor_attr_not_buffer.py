"""Finds a tensor that a module keeps as a plain attribute.

``model.to(device)`` moves parameters and buffers. A tensor that is merely assigned to ``self`` stays on the CPU.

Bad::

    import torch
    from torch import nn


    class Normalise(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.tensor([0.5, 0.4, 0.3])

        def forward(self, x):
            return x - self.mean

Good::

    import torch
    from torch import nn


    class Normalise(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.5, 0.4, 0.3]), persistent=False)

        def forward(self, x):
            return x - self.mean
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Change, Hit, Rule
from torchport.check.rules.meetings import meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C108",
    "tensor-attr-not-buffer",
    ERROR,
    mark("`self.{name}` is a plain tensor: it stays on the CPU when the module is moved"),
    mark('Register it: `self.register_buffer("{name}", …, persistent=False)`'),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Plain tensors of modules that meet the GPU."""
    for event, node in meetings(source, META.name):
        words = {"name": event.name}
        yield Hit(node, words, registered(source, node, event.name), safe=True, seen=where(source, event))


def registered(source: Source, node: ast.AST, name: str) -> tuple[Change, ...]:
    """``self.x = value`` as a buffer that the state_dict does not have, where that is its only assignment."""
    owner = source.method_class(node)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or owner is None:
        return ()
    function = source.function(node)
    if len(source.attributes(owner).get(name, ())) != 1 or function is None or function.name != "__init__":
        return ()
    start, end = source.span(node)
    first, last = source.span(node.value)
    return (
        (start, first, f'self.register_buffer("{name}", '),
        (last, end, ", persistent=False)"),
    )

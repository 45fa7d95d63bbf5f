"""Finds a random generator of the CPU that is to draw on the GPU.

A generator keeps its state where its numbers are made, and draws for no other device.

Bad::

    import torch

    device = torch.device("cuda")
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(8, generator=generator, device=device)

Good::

    import torch

    device = torch.device("cuda")
    generator = torch.Generator(device=device).manual_seed(3)
    noise = torch.randn(8, generator=generator, device=device)

Good::

    import torch

    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(8, generator=generator).to("cuda")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.meetings import device_name, meetings, where
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C113",
    "generator-device-mismatch",
    ERROR,
    mark("`{code}` makes a generator of the CPU, and it is to draw on the GPU"),
    mark("Make the generator on the device on which it draws, or draw on the CPU and move the result"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Generators that draw for the GPU; another device draws other numbers, so the repair is not safe."""
    for event, node in meetings(source, META.name):
        device = device_name(source, node)
        plain = isinstance(node, ast.Call) and not node.args and not node.keywords
        edits = (changes.add_argument(source, node, f"device={device}"),) if device and plain else ()  # type: ignore[arg-type]
        yield Hit(node, {"code": source.code(node)}, edits, seen=where(source, event))

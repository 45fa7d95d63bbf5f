"""Finds a training on GPUs in full precision.

Tensor cores multiply float16 and bfloat16 several times as fast as float32, in half the memory. With ``autocast``
the weights stay float32 and most models train as well as before.

Bad::

    import torch
    from torch import nn


    def train(model, loader, optimizer):
        model.cuda()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()

Good::

    import torch
    from torch import nn


    def train(model, loader, optimizer):
        model.cuda()
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.rules.training import backwards, inner_loop, is_managed, optimizer_steps, uses_cuda
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C402",
    "no-autocast",
    INFO,
    mark("This training computes in float32 throughout"),
    mark('Try `with torch.autocast("cuda", dtype=torch.bfloat16):` around the forward pass and the loss'),
    confidence=POSSIBLE,
)
_MIXED = re.compile(r"autocast|\bamp\b|bfloat16|float16|\.half\(|GradScaler|fp16|bf16|mixed_precision", re.IGNORECASE)


def look(source: Source) -> Iterator[Hit]:
    """The first loop of a file that trains, where the file uses a GPU and nothing in it speaks of a lower precision."""
    if not source.calls(".backward") or not uses_cuda(source) or is_managed(source) or _MIXED.search(code_of(source)):
        return
    stepped = {inner_loop(source, call) for call in optimizer_steps(source)}
    for call in backwards(source):
        loop = inner_loop(source, call)
        if loop is not None and loop in stepped:
            start = source.span(loop)[0]
            yield Hit((start, start + len("for")))
            return

"""Finds a training in float32 that leaves the tensor cores unused.

On Ampere and later GPUs a float32 product can run in TF32: ten bits of mantissa, several times as fast. For matrix
products torch has that off until ``torch.set_float32_matmul_precision("high")``.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(4, 8, device="cuda")).mean().backward()
        optimizer.step()

Good::

    import torch
    from torch import nn

    torch.set_float32_matmul_precision("high")
    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(4, 8, device="cuda")).mean().backward()
        optimizer.step()
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import INFO, POSSIBLE, Hit, Rule
from torchport.check.rules.kinds import is_optimizer
from torchport.check.rules.training import backwards, inner_loop, is_managed, optimizer_steps, stepped, uses_cuda
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C410",
    "tf32-not-set",
    INFO,
    mark("The optimizer of this file steps in float32, and nothing allows TF32"),
    mark('Say `torch.set_float32_matmul_precision("high")` at the start, if ten bits of mantissa will do'),
    confidence=POSSIBLE,
    since=(1, 12),
)
_SET = re.compile(r"float32_matmul_precision|tf32|fp32_precision|autocast|\.half\(|bfloat16|float16|float64|\.double\(")


def look(source: Source) -> Iterator[Hit]:
    """The first step of an optimizer that the file makes itself, where it uses a GPU and says nothing of precision."""
    if not source.calls(".backward") or not uses_cuda(source) or is_managed(source) or _SET.search(code_of(source)):
        return
    trained = {inner_loop(source, call) for call in backwards(source)}
    for call in optimizer_steps(source):
        owner = stepped(source, call)
        loop = inner_loop(source, call)
        if owner is not None and is_optimizer(source, owner) and loop is not None and loop in trained:
            yield Hit(call)
            return

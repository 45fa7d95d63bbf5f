"""Finds a GradScaler beside bfloat16.

The scaler keeps the small gradients of float16 from becoming zero. bfloat16 has the range of float32 and needs
none: the scaler only costs a look at every gradient and a synchronisation per step.

Bad::

    import torch


    def train(model, loader, optimizer, criterion):
        scaler = torch.amp.GradScaler("cuda")
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

Good::

    import torch


    def train(model, loader, optimizer, criterion):
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.training import AUTOCASTS, SCALERS
from torchport.check.source import Source, argument, is_open
from torchport.text import mark

META = Rule(
    "C405",
    "scaler-with-bf16",
    WARNING,
    mark("`{code}` scales gradients that are computed in bfloat16, which needs no scaling"),
    mark("Leave the scaler out, or give it `enabled=False`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Scalers that nothing switches off, in a file whose every autocast says bfloat16."""
    casts = source.calls(*AUTOCASTS)
    if not casts or not all(_is_bfloat16(source, call) for call in casts):
        return
    for call in source.calls(*SCALERS):
        if argument(call, "enabled") is None and not is_open(call) and len(call.args) < 2:
            change = changes.add_argument(source, call, "enabled=False")
            yield Hit(call, {"code": source.code(call)}, (change,))


def _is_bfloat16(source: Source, call: ast.Call) -> bool:
    given = argument(call, "dtype", 1)
    values = source.values(given) if given is not None else []
    return bool(values) and all(source.name(each) == "torch.bfloat16" for each in values)

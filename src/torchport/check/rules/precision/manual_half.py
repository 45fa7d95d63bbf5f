"""Finds a model whose weights are made float16 for training.

Weights of half precision cannot take small steps: an update below a thousandth of a weight is lost. ``autocast``
keeps the weights in float32 and computes in half precision where that does no harm.

Bad::

    import torch
    from torch import nn


    def train(loader):
        model = nn.Linear(8, 2).cuda()
        model.half()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda().half()), y.cuda()).backward()
            optimizer.step()

Good::

    import torch
    from torch import nn


    def predict(loader):
        model = nn.Linear(8, 2).cuda().half()
        with torch.no_grad():
            return [model(x.cuda().half()) for x in loader]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.kinds import is_module
from torchport.check.rules.ranks import home
from torchport.check.rules.training import backwards, is_managed, receiver
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C409",
    "manual-half",
    WARNING,
    mark("`{code}` trains with float16 weights, which lose small updates"),
    mark("Leave the weights in float32 and use torch.autocast"),
)

_MASTERS = re.compile(r"FP16|fp16_?optim|loss_?scal|GradScaler|master_?(param|weight)|[Ff]loat16Optim")


def look(source: Source) -> Iterator[Hit]:
    """``.half()`` of a module in a function that takes gradients."""
    if not source.calls(".half") or is_managed(source) or _MASTERS.search(code_of(source)):
        return
    trains = {home(source, call) for call in backwards(source)}
    for call in source.calls(".half"):
        owner = receiver(call)
        if owner is not None and not call.args and home(source, call) in trains and is_module(source, owner):
            yield Hit(call, {"code": source.code(call)})

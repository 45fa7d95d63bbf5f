"""Finds a validation for which the model is not switched to evaluation.

Dropout keeps throwing values away, and BatchNorm goes on learning its statistics, from the held-out data now.

Bad::

    import torch
    from torch import nn


    def main(train_loader, val_loader, optimizer):
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        for x, y in train_loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for x, y in val_loader:
                right += (model(x).argmax(1) == y).sum().item()
        print(right)

Good::

    import torch
    from torch import nn


    def main(train_loader, val_loader, optimizer):
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        for x, y in train_loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            model.eval()
            for x, y in val_loader:
                right += (model(x).argmax(1) == y).sum().item()
            model.train()
        print(right)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.evaluation import evaluations
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C603",
    "eval-mode-missing",
    WARNING,
    mark("This loop tries out `{model}` in training mode: dropout is on, BatchNorm learns from held-out data"),
    mark("Call `{model}.eval()` before it and `{model}.train()` after it"),
)
_SWITCHES = re.compile(r"\.eval\(\)|\.train\(")
_MATTERS = re.compile(r"[Dd]ropout|BatchNorm|InstanceNorm|torchvision\.models|import models|models\.\w|timm")


def look(source: Source) -> Iterator[Hit]:
    """Loops over held-out data in a file that never switches a mode and has layers to which that matters."""
    if not source.calls(".backward") or _SWITCHES.search(code_of(source)) or not _MATTERS.search(code_of(source)):
        return
    for each in evaluations(source):
        if not each.held_out:
            continue
        model = source.code(each.model)
        fix: tuple[Change, ...] = ()
        if isinstance(each.loop, ast.For) and not each.loop.orelse:
            fix = (
                changes.before(source, each.loop, f"{model}.eval()"),
                changes.after(source, each.loop, f"{model}.train()"),
            )
        yield Hit(each.loop, {"model": model}, fix)

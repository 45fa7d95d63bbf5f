"""Finds a loop that tries out a model and records all for a backward pass that never comes.

Each call keeps its activations until the result is gone: a validation needs several times the memory, and a batch
that fits in training no longer does.

Bad::

    import torch


    def validate(model, loader, criterion):
        model.eval()
        total = 0.0
        for x, y in loader:
            total += criterion(model(x), y).item()
        return total

Good::

    import torch


    @torch.no_grad()
    def validate(model, loader, criterion):
        model.eval()
        total = 0.0
        for x, y in loader:
            total += criterion(model(x), y).item()
        return total

Bad::

    import torch
    from torch import nn


    def main(train_loader, val_loader, optimizer):
        model = nn.Linear(8, 2)
        for x, y in train_loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        right = 0
        for x, y in val_loader:
            right += (model(x).argmax(1) == y).sum().item()
        print(right)

Good::

    import torch


    def validate(model, loader, criterion):
        model.eval()
        with torch.inference_mode():
            return sum(criterion(model(x), y).item() for x, y in loader)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.evaluation import Evaluation, evaluations
from torchport.check.rules.nesting import below
from torchport.check.rules.ranks import home
from torchport.check.rules.training import without_gradients
from torchport.check.rules.words import code_of, plain
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C602",
    "eval-without-no-grad",
    WARNING,
    mark("This loop calls `{model}` with gradients that nobody uses: it needs several times the memory"),
    mark("Put it below `with torch.no_grad():`, or decorate the function with `@torch.no_grad()`"),
)
_WANTS = re.compile(r"requires_grad|autograd\.grad|\.grad\b|no_grad|inference_mode|set_grad_enabled|\byield\b")

_REPORTS = re.compile(r"val|test|eval|predict|infer|sample|generate", re.IGNORECASE)  # nothing trains on what they give


def look(source: Source) -> Iterator[Hit]:
    """Evaluations after ``.eval()`` or over held-out data, outside anything that switches gradients off."""
    for each in evaluations(source):
        if each.mode != "eval" and not (each.held_out and each.mode is None):
            continue
        if "set_grad_enabled(False)" in code_of(source):
            return
        here = home(source, each.loop)
        if without_gradients(source, each.loop) or _WANTS.search(plain(source.code(each.loop))):
            continue
        function = here if isinstance(here, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        if function is not None and (_WANTS.search(plain(source.code(function))) or _called_without(source, function)):
            continue
        safe = each.held_out or (function is not None and bool(_REPORTS.search(function.name)))
        yield Hit(each.loop, {"model": source.code(each.model)}, _fix(source, each, function), safe, ("torch",))


def _called_without(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the file calls a function where gradients are off already."""
    calls = [call for call in source.nodes(ast.Call) if isinstance(call.func, (ast.Name, ast.Attribute))]
    return any(
        without_gradients(source, call)
        for call in calls
        if (call.func.id if isinstance(call.func, ast.Name) else call.func.attr) == function.name  # type: ignore[attr-defined]
    )


def _fix(source: Source, found: Evaluation, function: ast.AST | None) -> tuple[Change, ...]:
    """A decorator where the function does nothing else, else a block around the loop."""
    if isinstance(function, ast.FunctionDef) and found.mode == "eval":
        trains = any(home(source, call) is function for call in source.calls(".backward", ".step", ".zero_grad"))
        if not trains and not function.decorator_list:
            return (changes.before(source, function, "@torch.no_grad()"),)
    return below(source, [found.loop], "with torch.no_grad():")

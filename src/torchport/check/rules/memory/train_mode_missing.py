"""Finds a training that goes on in evaluation mode.

After the first validation the model stays as ``.eval()`` left it: from the second epoch on nothing is dropped and
BatchNorm learns no more.

Bad::

    import torch


    def fit(model, train_loader, val_loader, optimizer, criterion):
        for epoch in range(10):
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                print(sum(criterion(model(x), y).item() for x, y in val_loader))

Good::

    import torch


    def fit(model, train_loader, val_loader, optimizer, criterion):
        for epoch in range(10):
            model.train()
            for x, y in train_loader:
                optimizer.zero_grad()
                criterion(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                print(sum(criterion(model(x), y).item() for x, y in val_loader))
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.rules.training import backwards, called_functions, receiver
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C604",
    "train-mode-missing",
    ERROR,
    mark("`{code}` is never taken back: from the second round on the training runs in evaluation mode"),
    mark("Call `{model}.train()` before each epoch of training"),
)

_SWITCHES = re.compile(r"\.train\(|set_train|train_mode")


def look(source: Source) -> Iterator[Hit]:
    """``model.eval()`` in a loop that trains as well, itself or by what it calls, where nothing says ``.train``."""
    if not source.calls(".eval") or _SWITCHES.search(code_of(source)):
        return
    trained = {function for call in backwards(source) if (function := source.function(call)) is not None}
    for call in source.calls(".eval"):
        owner = receiver(call)
        if owner is None or call.args or not isinstance(source.parent(call), ast.Expr):
            continue
        model = source.code(owner)
        if not any(source.code(each.func) == model for each in source.nodes(ast.Call)):
            continue
        loop = _epochs(source, call, trained)
        if loop is None:
            continue
        inside = source.function(loop) is source.function(call)
        fix: tuple[Change, ...] = ()
        if inside and source.indent(loop.body[0]):
            fix = (changes.before(source, loop.body[0], f"{model}.train()"),)
        yield Hit(call, {"code": source.code(call), "model": model}, fix)


def _epochs(source: Source, call: ast.Call, trained: set[ast.FunctionDef | ast.AsyncFunctionDef]) -> ast.For | None:
    """The loop in whose rounds a switch to evaluation and a training follow each other."""
    for loop in source.loops(call):
        if isinstance(loop, ast.For) and _trains(source, loop, trained):
            return loop
    function = source.function(call)
    if function is None or function in trained:
        return None
    for loop in source.nodes(ast.For):
        called = called_functions(source, loop)
        if function in called and _trains(source, loop, trained):
            return loop
    return None


def _trains(source: Source, loop: ast.For, trained: set[ast.FunctionDef | ast.AsyncFunctionDef]) -> bool:
    if any(loop in source.loops(call) for call in backwards(source)):
        return True
    return any(function in trained for function in called_functions(source, loop))

"""Finds code that goes to the GPU because there is one, and not because the model is there.

A model that was left on the CPU, or put on ``cuda:1``, then gets tensors of the first GPU.

Bad::

    import torch

    def predict(model, x):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return model(x.to(device))

Good::

    import torch

    def predict(model, x):
        device = next(model.parameters()).device
        return model(x.to(device))

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            noise = torch.randn(x.shape)
            if torch.cuda.is_available():
                noise = noise.cuda()
            return x + noise

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return x + torch.randn(x.shape, device=x.device)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.moves import is_guarded, moves
from torchport.check.source import Source, parameters
from torchport.text import mark

META = Rule(
    "C132",
    "device-from-availability-not-model",
    WARNING,
    mark("The device is chosen by what the machine has: the model may be elsewhere"),
    mark("Take it from the model, `next(model.parameters()).device`, or from the input, `x.device`"),
)


def look(source: Source) -> Iterator[Hit]:
    """``is_available()`` in what a forward runs, and in functions that are given a model and do not move it."""
    forwards = run_by_forward(source) if source.calls("torch.cuda.is_available") else set()
    for call in source.calls("torch.cuda.is_available"):
        function = source.function(call)
        if function is None or not _chooses(source, call):
            continue
        if function in forwards:
            yield Hit(call)
            continue
        model = _given_model(source, function)
        chosen = source.enclosing(call, ast.Assign)
        if model and chosen is not None and source.function(chosen) is function:
            text = f"next({model}.parameters()).device"
            yield Hit(call, {}, (replace(source, chosen.value, text),) if not is_guarded(source, chosen) else ())


def _chooses(source: Source, call: ast.Call) -> bool:
    """Whether the answer decides on a device: in an ``a if b else c``, or around a move."""
    above = source.parent(call)
    if isinstance(above, ast.IfExp):
        return above.test is call
    if not isinstance(above, ast.If) or above.test is not call:
        return False
    return any(isinstance(each, ast.Call) and moves(source, each) for each in ast.walk(above))


def _given_model(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The parameter that is a model: called in the function with something moved, and not moved itself."""
    names = {each.arg for each in parameters(function)}
    called = {
        node.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    }
    touched = {
        call.func.value.id
        for call in source.calls(".to", ".cuda", ".cpu", ".eval", ".train")
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        if source.function(call) is function and call.func.attr in ("to", "cuda", "cpu")
    }
    rebound = set(source.scope_of(function).bindings)
    only = {name for name in called if len(source.scope_of(function).bindings[name]) == 1 and name in rebound}
    models = [name for name in only - touched if "model" in name or name in ("net", "network")]
    return models[0] if len(models) == 1 else ""

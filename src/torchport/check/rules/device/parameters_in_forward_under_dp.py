"""Finds ``next(self.parameters())`` in what a forward runs.

The replicas of ``nn.DataParallel`` have no parameters: on two GPUs this ends with ``StopIteration``, on one it works.

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            h = torch.zeros(8, device=next(self.parameters()).device)
            return self.layer(x) + h

    model = nn.DataParallel(Net())

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            h = torch.zeros(8, device=x.device)
            return self.layer(x) + h

    model = nn.DataParallel(Net())

Bad::

    from torch import nn

    class Rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(8, 8)

        def init_hidden(self, size):
            weight = next(self.parameters())
            return weight.new_zeros(1, size, 8)

        def forward(self, x):
            return self.rnn(x, self.init_hidden(x.size(1)))

Good::

    from torch import nn

    class Rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(8, 8)

        def count(self):
            return next(self.parameters()).numel()

        def forward(self, x):
            return self.rnn(x, x.new_zeros(1, x.size(1), 8))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, ERROR, INFO, Change, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C133",
    "parameters-in-forward-under-dp",
    ERROR,
    mark("`{code}` runs in `forward`: in the replicas of `nn.DataParallel` it ends with StopIteration"),
    mark("Take the device from the input: `x.device`"),
)


def look(source: Source) -> Iterator[Hit]:
    """An error where the file has a ``nn.DataParallel``, else a hint."""
    nexts = [call for call in source.nodes(ast.Call) if _is_first_parameter(call)]
    if not nexts:
        return
    forwards = run_by_forward(source)
    wrapped = bool(source.calls("torch.nn.DataParallel"))
    for call in nexts:
        method = source.function(call)
        if method is not None and method in forwards:
            changes = _repair(source, call, method)
            words = {"code": source.code(call)}
            yield Hit(call, words, changes, severity=None if wrapped else INFO, confidence=None if wrapped else CERTAIN)


def _is_first_parameter(call: ast.Call) -> bool:
    match call:
        case ast.Call(
            func=ast.Name(id="next"),
            args=[ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr="parameters"), args=[])],
        ):
            return True
    return False


def _repair(source: Source, call: ast.Call, method: ast.AST) -> tuple[Change, ...]:
    """The device of the input, if that is one argument which a layer is called with."""
    above = source.parent(call)
    if not isinstance(method, ast.FunctionDef) or method.name != "forward" or len(method.args.args) != 2:
        return ()
    name = method.args.args[1].arg
    used = any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
        and any(isinstance(each, ast.Name) and each.id == name for each in node.args)
        for node in ast.walk(method)
    )
    takes = isinstance(above, ast.Attribute) and above.attr == "device"
    return (replace(source, call, name),) if used and takes else ()

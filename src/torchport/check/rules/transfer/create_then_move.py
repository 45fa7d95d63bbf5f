"""Finds tensors that are made on the CPU only to be moved to the GPU.

The memory is filled by the CPU and copied over; with ``device=`` the GPU makes it itself.

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(x.size(1), x.size(1)).to(x.device)
            return mask @ x

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(x.size(1), x.size(1), device=x.device)
            return mask @ x

Bad::

    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    weight = torch.randn(64, 10, requires_grad=True).to(device)
    optimizer = torch.optim.SGD([weight], lr=0.1)

Good::

    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    weight = torch.randn(64, 10, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    values = torch.tensor([1, 2, 3]).to(device)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument
from torchport.check.rule import CERTAIN, ERROR, INFO, WARNING, Change, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.moves import is_cpu, target
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C217",
    "create-then-move",
    WARNING,
    mark("`{function}` makes the tensor on the CPU, and `{move}` copies it"),
    mark("Give the device to `{function}`: `device=…`"),
    confidence=CERTAIN,
)

# With the same numbers on any device.
_EXACT = ("zeros", "ones", "empty", "full", "eye", "arange", "tril_indices", "triu_indices")
_OTHERS = ("rand", "randn", "randint", "randperm", "linspace", "logspace")


def look(source: Source) -> Iterator[Hit]:
    """A factory with a move behind it. An error where the gradient of what was made is wanted: the copy has none."""
    forwards: set[ast.AST] | None = None
    for call in source.calls(".to", ".cuda"):
        made = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(made, ast.Call):
            continue
        name = source.name(made.func).removeprefix("torch.")
        device = target(source, call) if source.code(call.func).endswith("to") else None
        if name not in _EXACT + _OTHERS or (device is None and not source.code(call.func).endswith(".cuda")):
            continue
        if any(argument(made, each) is not None for each in ("device", "generator", "pin_memory", "out")):
            continue
        if device is not None and is_cpu(source, device):
            continue
        forwards = run_by_forward(source) if forwards is None else forwards
        leaf = constant(argument(made, "requires_grad")) is True
        repeated = bool(source.loops(call)) or source.function(call) in forwards
        given = ", ".join(source.code(each) for each in [*call.args, *call.keywords])
        move = f".{source.code(call.func).rpartition('.')[2]}({given})"
        words = {"function": source.code(made.func), "move": move}
        safe = name in _EXACT and not leaf and not _has_float(made)
        severity = ERROR if leaf and _needs_gradient(source, call) else WARNING if leaf or repeated else INFO
        yield Hit(call, words, _repair(source, call, made, device), safe, severity=severity)


def _needs_gradient(source: Source, call: ast.Call) -> bool:
    """Whether the file reads the gradient of the moved copy, which has none, or gives that to an optimizer."""
    above = source.parent(call)
    kept = source.code(above.targets[0]) if isinstance(above, ast.Assign) else ""
    if any(node.attr == "grad" and source.code(node.value) == kept for node in source.nodes(ast.Attribute)):
        return True
    lists = [
        each
        for made in source.nodes(ast.Call)
        if source.name(made.func).startswith("torch.optim.")
        for each in made.args
    ]
    return bool(kept) and any(
        source.code(part) == kept for each in lists for part in ast.walk(each) if isinstance(part, ast.expr)
    )


def _has_float(made: ast.Call) -> bool:
    return any(isinstance(constant(each), float) for each in made.args)


def _repair(source: Source, call: ast.Call, made: ast.Call, device: ast.expr | None) -> tuple[Change, ...]:
    """Only where the move gives nothing but a device, and ``non_blocking``."""
    extra = [each for each in call.keywords if each.arg not in ("device", "non_blocking")]
    if is_open(made) or extra or len(call.args) > 1 or (device is None and call.args):
        return ()
    text = source.code(device) if device is not None else '"cuda"'
    end = source.span(made)[1]
    if "\n" in source.text[end : source.span(call)[1]] or source.text[end] != ".":
        return ()
    return (add_argument(source, made, f"device={text}"), (end, source.span(call)[1], ""))

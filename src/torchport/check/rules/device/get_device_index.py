"""Finds ``x.get_device()`` where a device is asked for.

It is a number, and -1 for a tensor on the CPU, which is no device: ``x.device`` is one anywhere.

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(4, device=x.get_device())
            return x * mask

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(4, device=x.device)
            return x * mask

Bad::

    import torch

    x = torch.ones(3)
    y = torch.zeros(3).cuda(x.get_device())

Good::

    import torch

    x = torch.ones(3)
    y = torch.zeros(3).to(x.device)
    print(x.get_device())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.rules.layers import run_by_forward
from torchport.check.source import Source, parameters
from torchport.text import mark

META = Rule(
    "C134",
    "get-device-index",
    WARNING,
    mark("`{code}` is -1 for a tensor on the CPU, and that is no device"),
    mark("Use `{name}.device`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Such calls as ``device=``, or as what ``.to()`` and ``.cuda()`` are given, on what is known to be a tensor."""
    calls = [call for call in source.calls(".get_device") if not call.args and not call.keywords]
    forwards = run_by_forward(source) if calls else set()
    for call in calls:
        value = call.func.value if isinstance(call.func, ast.Attribute) else None
        if value is None or not (is_tensor(source, value) or _is_input(source, value, forwards)):
            continue
        above = source.parent(call)
        tensor = source.code(value)
        words = {"code": source.code(call), "name": tensor}
        if isinstance(above, ast.keyword) and above.arg == "device":
            yield Hit(call, words, (replace(source, call, f"{tensor}.device"),), safe=True)
        elif isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.args[:1] == [call]:
            method = above.func.attr
            if method in ("to", "cuda") and not source.name(above.func):
                end = source.span(above.func)[1]
                changes = [replace(source, call, f"{tensor}.device")]
                if method == "cuda":
                    changes.append((end - len("cuda"), end, "to"))
                yield Hit(call, words, tuple(changes), safe=True)


def _is_input(source: Source, node: ast.expr, forwards: set[ast.AST]) -> bool:
    """Whether a name is an argument of ``forward``: what a module is called with and asks for its device."""
    function = source.function(node)
    return (
        isinstance(node, ast.Name)
        and function is not None
        and function in forwards
        and any(each.arg == node.id for each in parameters(function)[1:])
    )

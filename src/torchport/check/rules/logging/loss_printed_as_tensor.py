"""Finds a loss that is printed as the tensor it is.

What appears is ``tensor(0.6931, device='cuda:0', grad_fn=<NllLossBackward0>)``.

Bad::

    import torch
    from torch import nn

    loss = nn.MSELoss()(torch.zeros(3, requires_grad=True), torch.ones(3))
    loss.backward()
    print("loss:", loss)

Good::

    import torch
    from torch import nn

    loss = nn.MSELoss()(torch.zeros(3, requires_grad=True), torch.ones(3))
    loss.backward()
    print("loss:", loss.item())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C725",
    "loss-printed-as-tensor",
    INFO,
    mark("`{name}` is printed as a tensor, with its device and `grad_fn`"),
    mark("Print the number: `{name}.item()`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Names that ``backward()`` is called on in the same function, as an argument of print or bare in an f-string."""
    losses = {
        (call.func.value.id, source.function(call))
        for call in source.calls(".backward")
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and not call.args
    }
    for name in source.nodes(ast.Name) if losses else ():
        if (name.id, source.function(name)) in losses and _is_shown(source, name):
            end = source.span(name)[1]
            fits = not isinstance(source.parent(name), ast.FormattedValue)  # offsets in f-strings, before Python 3.12
            yield Hit(name, {"name": name.id}, ((end, end, ".item()"),) if fits else (), safe=True)


def _is_shown(source: Source, name: ast.Name) -> bool:
    match source.parent(name):
        case ast.Call(func=ast.Name(id="print"), args=given):
            return name in given
        case ast.FormattedValue(format_spec=None) as shown:
            call = source.enclosing(shown, ast.Call)
            return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
    return False

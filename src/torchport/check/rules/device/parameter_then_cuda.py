"""Finds a parameter that is moved as soon as it is made.

What ``.cuda()`` and ``.to(device)`` give back on a GPU is a copy and no ``nn.Parameter``: the module does not see it,
the optimizer does not train it. On the CPU ``.to`` copies nothing, so there it works.

Bad::

    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(10)).cuda()

Good::

    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(10).cuda())

Bad::

    import torch
    from torch.nn import Parameter

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bias = Parameter(torch.zeros(4)).to(device)

Good::

    import torch
    from torch.nn import Linear, Parameter

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bias = Parameter(torch.zeros(4, device=device))
    layer = Linear(4, 4).to(device)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Change, Hit, Rule
from torchport.check.source import Source, is_open
from torchport.text import mark

META = Rule(
    "C128",
    "parameter-then-cuda",
    ERROR,
    mark("`{move}` gives back a copy that is no parameter: it is not trained, and not saved"),
    mark(
        "Move the tensor, then make it a parameter: `nn.Parameter(tensor{move})`; a module's own move with the module"
    ),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """``nn.Parameter(…)`` with a move behind it, where what comes out is kept."""
    for call in source.calls(".cuda", ".to"):
        made = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(made, ast.Call) or source.name(made.func) != "torch.nn.Parameter":
            continue
        above = source.parent(call)
        if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is call:
            move = source.text[source.span(made)[1] : source.span(call)[1]].strip()
            yield Hit(call, {"move": move}, _repair(source, call, made, move))


def _repair(source: Source, call: ast.Call, made: ast.Call, move: str) -> tuple[Change, ...]:
    if not made.args or is_open(made) or is_open(call) or not move.startswith("."):
        return ()
    data = made.args[0]
    start, end = source.span(data)
    simple = isinstance(data, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    inner = ((end, end, move),) if simple else ((start, start, "("), (end, end, f"){move}"))
    return (*inner, (source.span(made)[1], source.span(call)[1], ""))

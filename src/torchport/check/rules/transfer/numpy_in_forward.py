"""Finds ``.numpy()`` in what a forward runs.

The GPU is waited for in each call, what comes back is on the CPU, and no gradient flows through it.

Bad::

    import numpy as np
    import torch
    from torch import nn

    class Top(nn.Module):
        def forward(self, x):
            order = np.argsort(x.detach().cpu().numpy(), axis=-1)
            return x.gather(-1, torch.from_numpy(order).to(x.device))

Good::

    import torch
    from torch import nn

    class Top(nn.Module):
        def forward(self, x):
            return x.gather(-1, torch.argsort(x, dim=-1))

Bad::

    import torch
    from torch import nn

    class Floor(nn.Module):
        def forward(self, x):
            return self.low(x)

        def low(self, x):
            return torch.tensor(x.cpu().numpy() // 1)

Good::

    from torch import nn

    class Floor(nn.Module):
        def forward(self, x):
            return x.floor()

        def show(self, x):
            return x.cpu().numpy()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C211",
    "numpy-in-forward",
    WARNING,
    mark("`{code}` in `forward` waits for the GPU in each call, and stops the gradient"),
    mark("Compute it with torch, where the tensor is"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """The calls without arguments; not those under a condition, as pictures and checks are."""
    calls = [call for call in source.calls(".numpy") if not call.args]
    forwards = run_by_forward(source) if calls else set()
    for call in calls:
        function = source.function(call)
        if _is_length(source, call):
            continue
        if function in forwards and source.enclosing(call, ast.If, ast.IfExp, ast.FunctionDef) is function:
            yield Hit(call, {"code": source.code(call)})


def _is_length(source: Source, call: ast.Call) -> bool:
    """``pack_padded_sequence`` reads its lengths on the CPU."""
    above = source.parent(call)
    if "len" in source.code(call.func).lower():
        return True
    return isinstance(above, ast.Call) and source.name(above.func).endswith(".pack_padded_sequence")

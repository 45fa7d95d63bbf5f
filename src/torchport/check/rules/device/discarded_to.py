"""Finds a tensor that is moved, and the moved one thrown away.

``tensor.to(…)`` gives back another tensor and leaves this one where it is; only a module moves itself.

Bad::

    import torch

    x = torch.ones(3)
    x.to("cuda")
    print(x.sum())

Good::

    import torch

    x = torch.ones(3)
    x = x.to("cuda")
    print(x.sum())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.rules.kinds import is_tensor
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C101",
    "discarded-to",
    ERROR,
    mark("`{code}` moves nothing: `.{method}()` gives back the moved tensor, and nobody keeps it"),
    mark("Keep what it gives back: `{name} = {code}`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Statements that are nothing but ``tensor.to(…)``, ``.cuda()`` or ``.cpu()``."""
    for call in source.calls(".to", ".cuda", ".cpu"):
        statement = source.parent(call)
        if not isinstance(statement, ast.Expr) or not isinstance(call.func, ast.Attribute):
            continue
        moved = call.func.value
        if not is_tensor(source, moved):
            continue
        words = {"code": source.code(call), "method": call.func.attr, "name": source.code(moved)}
        start = source.span(statement)[0]
        simple = isinstance(moved, ast.Name)
        yield Hit(call, words, ((start, start, f"{source.code(moved)} = "),) if simple else (), safe=True)

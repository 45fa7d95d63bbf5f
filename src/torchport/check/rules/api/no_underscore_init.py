"""Finds initializers under their name without the underscore.

They work in place, as the names with one say; these only warn and call those.

Bad::

    from torch import nn

    layer = nn.Linear(4, 2)
    nn.init.xavier_uniform(layer.weight)
    nn.init.constant(layer.bias, 0)

Good::

    from torch import nn

    layer = nn.Linear(4, 2)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.constant_(layer.bias, 0)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C940",
    "no-underscore-init",
    INFO,
    mark("`{name}` is deprecated since torch 0.4"),
    mark("Write `{name}_`"),
    confidence=CERTAIN,
    since=(0, 4),
)
_NAMES = frozenset(
    f"torch.nn.init.{name}"
    for name in (
        "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal "
        "sparse"
    ).split()
)


def look(source: Source) -> Iterator[Hit]:
    """Calls by module and name: one imported by its name has to be changed where it is imported, too."""
    for call in source.calls(*_NAMES):
        name = source.name(call.func).rsplit(".", 1)[-1]
        end = source.span(call.func)[1]
        written = isinstance(call.func, ast.Attribute) and call.func.attr == name
        yield Hit(call.func, {"name": name}, ((end, end, "_"),) if written else (), safe=True)

"""Finds ``size_average`` and ``reduce``, which ``reduction`` has replaced.

Bad::

    from torch import nn

    criterion = nn.MSELoss(size_average=False)
    other = nn.CrossEntropyLoss(reduce=False)

Good::

    from torch import nn

    criterion = nn.MSELoss(reduction="sum")
    other = nn.CrossEntropyLoss(reduction="none")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_argument, replace
from torchport.check.rule import CERTAIN, INFO, Change, Hit, Rule
from torchport.check.rules.losses import is_loss_class, is_loss_function
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C939",
    "size-average",
    INFO,
    mark("`{name}` is deprecated since torch 1.0"),
    mark('Write `reduction="{instead}"`'),
    confidence=CERTAIN,
    since=(1, 0),
)
_OLD = ("size_average", "reduce")


def look(source: Source) -> Iterator[Hit]:
    """Losses of torch with literal True, False or None; together they mean what torch makes of them."""
    for call in source.nodes(ast.Call):
        old = [each for each in call.keywords if each.arg in _OLD]
        if not old or not _is_loss(source.name(call.func)) or any(each.arg == "reduction" for each in call.keywords):
            continue
        given = {each.arg: constant(each.value) for each in old}
        if any(not isinstance(each.value, ast.Constant) or each.value.value not in (True, False, None) for each in old):
            continue
        average, reduce = (given.get(name) is not False for name in _OLD)
        instead = "none" if not reduce else "mean" if average else "sum"
        edits: list[Change] = [replace(source, old[0], f'reduction="{instead}"')]
        edits += [remove_argument(source, call, each) for each in old[1:]]
        yield Hit(old[0], {"name": old[0].arg, "instead": instead}, tuple(edits), safe=True)


def _is_loss(name: str) -> bool:
    return is_loss_class(name) or is_loss_function(name)

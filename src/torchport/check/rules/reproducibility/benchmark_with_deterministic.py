"""Finds ``cudnn.benchmark`` beside ``cudnn.deterministic``.

The one measures which algorithm is fastest and takes that, which may be another in every run; the other wants the
same result each time.

Bad::

    import torch

    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True

Good::

    import torch

    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C702",
    "benchmark-with-deterministic",
    WARNING,
    mark("`cudnn.benchmark` chooses algorithms by their time, so runs differ in spite of `cudnn.deterministic`"),
    mark("Set `torch.backends.cudnn.benchmark = False`"),
)


def look(source: Source) -> Iterator[Hit]:
    """Both set to True in one block."""
    blocks: dict[ast.AST | None, dict[str, ast.Assign]] = {}
    for statement in source.nodes(ast.Assign):
        target = statement.targets[0]
        known = isinstance(target, ast.Attribute) and target.attr in ("benchmark", "deterministic")
        if known and source.name(target).startswith("torch.backends.cudnn."):
            blocks.setdefault(source.parent(statement), {})[source.name(target).rsplit(".", 1)[1]] = statement
    for found in blocks.values():
        if len(found) == 2 and all(constant(each.value) is True for each in found.values()):
            value = found["benchmark"].value
            yield Hit(found["benchmark"], changes=(replace(source, value, "False"),))

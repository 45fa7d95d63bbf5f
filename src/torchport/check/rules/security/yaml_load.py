"""Finds ``yaml.load`` without a loader.

Since PyYAML 6 it raises a TypeError; before, it could run code that the file names.

Bad::

    import torch
    import yaml

    with open("config.yaml") as file:
        config = yaml.load(file)

Good::

    import torch
    import yaml

    with open("config.yaml") as file:
        config = yaml.safe_load(file)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source, is_open
from torchport.text import mark

META = Rule(
    "C835",
    "yaml-load",
    ERROR,
    mark("`{code}` raises a TypeError since PyYAML 6: it needs a loader"),
    mark("Use `yaml.safe_load(…)`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Calls with the stream alone; which loader another call means is said there."""
    for call in source.calls("yaml.load"):
        if len(call.args) != 1 or call.keywords or is_open(call):
            continue
        name = source.code(call.func)
        fits = isinstance(call.func, ast.Attribute)
        change = replace(source, call.func, f"{name.removesuffix('load')}safe_load")
        yield Hit(call, {"code": source.code(call)}, (change,) if fits else (), safe=True)

"""Finds names that NumPy has no more: ``np.float`` and its like since 1.24, ``np.Inf`` and others since 2.0.

Torch runs with a new NumPy, and a fresh environment has one: the name raises an AttributeError.

Bad::

    import numpy as np
    import torch

    grid = torch.from_numpy(np.zeros((3, 3), dtype=np.float))
    index = np.arange(3).astype(np.int)
    best = np.Inf

Good::

    import numpy as np
    import torch

    grid = torch.from_numpy(np.zeros((3, 3), dtype=float))
    index = np.arange(3).astype(int)
    best = np.inf
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, ERROR, WARNING, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C947",
    "numpy-removed",
    ERROR,
    mark("NumPy has no `{name}` since {version}: it raises an AttributeError"),
    mark("Write `{instead}`"),
    confidence=CERTAIN,
    since=(2, 0),
)
_TYPES = frozenset({"float", "int", "object", "str", "complex"})
_NAMES = {
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "NaN": "nan",
    "float_": "float64",
    "complex_": "complex128",
    "unicode_": "str_",
    "string_": "bytes_",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
}


def look(source: Source) -> Iterator[Hit]:
    """``np.bool`` is not among them: NumPy 2 has it again. What 2.0 removed is a warning, as many pin an older one."""
    for node in source.nodes(ast.Attribute):
        if node.attr in _TYPES and source.name(node) == f"numpy.{node.attr}":
            free = source.scope_at(node).find(node.attr) is None
            change = (replace(source, node, node.attr),) if free else ()
            words = {"name": source.code(node), "instead": node.attr, "version": "1.24"}
            yield Hit(node, words, change, safe=True)
        elif node.attr in _NAMES and source.name(node) == f"numpy.{node.attr}":
            instead = f"{source.code(node.value)}.{_NAMES[node.attr]}"
            words = {"name": source.code(node), "instead": instead, "version": "2.0"}
            yield Hit(node, words, (replace(source, node, instead),), safe=True, severity=WARNING)

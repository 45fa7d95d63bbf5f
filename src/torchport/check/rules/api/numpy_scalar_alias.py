"""Finds ``np.float`` and its like, which NumPy 1.24 removed.

They were only other names for Python's own types; now they raise an AttributeError.

Bad::

    import numpy as np
    import torch

    grid = torch.from_numpy(np.zeros((3, 3), dtype=np.float))
    index = np.arange(3).astype(np.int)

Good::

    import numpy as np
    import torch

    grid = torch.from_numpy(np.zeros((3, 3), dtype=float))
    index = np.arange(3).astype(int)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C947",
    "numpy-scalar-alias",
    ERROR,
    mark("NumPy has no `{name}` since 1.24: it raises an AttributeError"),
    mark("Write `{instead}`"),
    confidence=CERTAIN,
    since=(2, 0),
)
_ALIASES = frozenset({"float", "int", "object", "str", "complex"})


def look(source: Source) -> Iterator[Hit]:
    """``np.bool`` is not among them: NumPy 2 has it again."""
    for node in source.nodes(ast.Attribute):
        if node.attr in _ALIASES and source.name(node) == f"numpy.{node.attr}":
            free = source.scope_at(node).find(node.attr) is None
            change = (replace(source, node, node.attr),) if free else ()
            yield Hit(node, {"name": source.code(node), "instead": node.attr}, change, safe=True)

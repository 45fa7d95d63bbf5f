"""Finds deterministic algorithms without the setting of cuBLAS that they need.

On a GPU the first matrix product raises a RuntimeError, unless ``CUBLAS_WORKSPACE_CONFIG`` is set.

Bad::

    import torch

    torch.use_deterministic_algorithms(True)

Good::

    import os
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import before
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C703",
    "deterministic-without-cublas-env",
    ERROR,
    mark("on a GPU this needs `CUBLAS_WORKSPACE_CONFIG`: without it the first matrix product raises an error"),
    mark('Set it before CUDA starts: `os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")`'),
    since=(1, 8),
)


def look(source: Source) -> Iterator[Hit]:
    """Switched on for certain, not only to warn, in a file that does not name the setting."""
    if "CUBLAS_WORKSPACE_CONFIG" in source.text:
        return
    calls = source.calls("torch.use_deterministic_algorithms")
    for call in calls:
        if any(source.function(each) is source.function(call) is not None for each in calls if each is not call):
            continue  # switched on for a few lines
        if constant(argument(call, "mode", 0)) is True and constant(argument(call, "warn_only")) in (None, False):
            statement = source.statement(call)
            if argument(call, "warn_only") is not None and constant(argument(call, "warn_only")) is None:
                continue
            own_line = isinstance(statement, ast.Expr) and source.indent(statement) == " " * statement.col_offset
            line = 'os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")'
            yield Hit(call, changes=(before(source, statement, line),) if own_line else (), safe=True, needs=("os",))

"""Variables of the environment that a file sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.source import Source, constant


def sets(source: Source, variable: str) -> Iterator[tuple[ast.Assign, ast.expr]]:
    """The statements ``os.environ["…"] = value`` for one variable, each with its value."""
    if variable not in source.text:
        return
    for statement in source.nodes(ast.Assign):
        for target in statement.targets:
            named = isinstance(target, ast.Subscript) and constant(target.slice) == variable
            if named and source.name(getattr(target, "value", None)) == "os.environ":
                yield statement, statement.value

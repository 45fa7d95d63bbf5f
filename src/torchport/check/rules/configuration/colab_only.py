"""Finds what only Google Colab has.

Bad::

    import torch
    from google.colab import drive

    drive.mount("/content/drive")

Good::

    import torch

    try:
        from google.colab import drive
    except ImportError:
        drive = None
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C910",
    "colab-only",
    ERROR,
    mark("`{module}` exists on Colab alone: anywhere else this is an ImportError"),
    mark("Leave it out, and read files from where the machine has them"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Imports without a ``try`` or a test around them."""
    named: list[tuple[ast.stmt, str]] = [
        (each, f"{each.module}.{each.names[0].name}") for each in source.nodes(ast.ImportFrom)
    ]
    named += [(each, each.names[0].name) for each in source.nodes(ast.Import)]
    for statement, name in named:
        if name.split(".")[:2] == ["google", "colab"] and source.enclosing(statement, ast.Try, ast.If) is None:
            yield Hit(statement, {"module": "google.colab"})

"""Finds a program that chooses its GPUs by fixed numbers.

On a machine with fewer of them it finds none; and what a scheduler gave to the job is overridden.

Bad::

    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "3"
    import torch

Good::

    import os

    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "3")
    import torch
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.environment import sets
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C905",
    "cuda-visible-devices-hard-coded",
    WARNING,
    mark("GPU {numbers} by a fixed number: other machines have others, and a scheduler's choice is overridden"),
    mark("Leave it to what starts the program: `os.environ.setdefault(…)`, or no such line at all"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Literal numbers."""
    for statement, value in sets(source, "CUDA_VISIBLE_DEVICES"):
        numbers = constant(value)
        if isinstance(numbers, str) and re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", numbers):
            target = statement.targets[0]
            simple = len(statement.targets) == 1 and isinstance(target, ast.Subscript)
            environ = source.code(target.value) if isinstance(target, ast.Subscript) else ""
            text = f'{environ}.setdefault("CUDA_VISIBLE_DEVICES", {source.code(value)})'
            yield Hit(statement, {"numbers": numbers}, (replace(source, statement, text),) if simple else (), safe=True)

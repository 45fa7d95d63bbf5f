"""Finds a program that hides every GPU from itself.

Bad::

    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import torch

Good::

    import os

    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    import torch
"""

from __future__ import annotations

from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.rules.environment import sets
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C906",
    "gpus-hidden",
    WARNING,
    mark("this hides every GPU: the program runs on the CPU wherever it is"),
    mark("Leave it out, and set it outside where no GPU is wanted: `CUDA_VISIBLE_DEVICES= python …`"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Nothing, or -1, outside tests and branches."""
    for statement, value in sets(source, "CUDA_VISIBLE_DEVICES"):
        top = source.parent(statement) is source.tree
        if (
            top
            and constant(value) in ("", "-1")
            and not source.path.rsplit("/", 1)[-1].startswith(("test", "conftest"))
        ):
            yield Hit(statement)

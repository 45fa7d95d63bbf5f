"""Finds a torch that is installed in whatever version is the newest that day.

Another torch brings another CUDA, other kernels and other defaults: numbers change, and one day the driver of the
machine is too old for it. What is installed again later should be what was tested.

Bad::

    torch
    torchvision
    numpy==2.1.0

Bad::

    numpy==2.1.0
    torch>=2.1

Good::

    torch==2.6.0
    torchvision==0.21.0
    numpy==2.1.0

Good::

    torch~=2.6.0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import INFO, LIKELY, WARNING, Hit, Rule
from torchport.check.rules.requirements import packages
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C962",
    "unpinned-torch",
    WARNING,
    mark("`{code}` installs the newest torch of the day, with the CUDA that goes with it"),
    mark("Pin the version that was tested, such as `torch==2.6.0`, or the whole environment with a lock file"),
    confidence=LIKELY,
)
FILES = ("requirements", "dockerfile")


def look(text: Text) -> Iterator[Hit]:
    """A torch without a version, or with nothing but a lower bound, which is a library's right."""
    for asked in packages(text):
        rest = text.text[asked.end :].lstrip(" \t")
        if asked.name != "torch" or rest.startswith("@"):
            continue
        if not asked.version or re.fullmatch(r">[^<]*", asked.version):
            words = {"code": text.text[asked.start : asked.end].strip()}
            yield Hit((asked.start, asked.end), words, severity=INFO if asked.version else None)

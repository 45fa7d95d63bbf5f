"""Finds a torch that is installed without CUDA.

The wheels below ``/whl/cpu``, the versions that end in ``+cpu`` and ``cpuonly`` of conda hold no CUDA:
``torch.cuda.is_available()`` is False on every machine, and the training silently runs on the CPU.

Bad::

    --extra-index-url https://download.pytorch.org/whl/cpu
    torch==2.6.0

Bad::

    torch==2.6.0+cpu
    numpy

Good::

    --extra-index-url https://download.pytorch.org/whl/cu124
    torch==2.6.0
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import LIKELY, WARNING, Hit, Rule
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C963",
    "cpu-wheel-index",
    WARNING,
    mark("`{code}` installs a torch without CUDA, and no machine makes it see a GPU"),
    mark("Take the wheels for the CUDA of the machine, `/whl/cu124` say; keep those for the CPU in a file named so"),
    confidence=LIKELY,
)
FILES = ("requirements", "dockerfile", "shell")

_CPU = re.compile(
    r"https?://[^\s\"']*/whl/(?:nightly/|test/)?cpu\b(?!-)|\btorch(?:vision|audio)?==[\w.]+\+cpu\b|(?<=\s)cpuonly\b"
)
_MEANT = re.compile(r"(?:^|[^a-z])(?:cpu|ci|test|tests|docs?|lint)(?:[^a-z]|$)", re.IGNORECASE)


def look(text: Text) -> Iterator[Hit]:
    """One hit a file or command; files whose names say CPU, and those that offer CUDA too, mean it."""
    if _MEANT.search(text.path) or re.search(r"/whl/(?:nightly/)?(?:cu\d|\$|rocm)|\+cu\d", text.commands):
        return
    for match in _CPU.finditer(text.commands):
        yield Hit(match.span(), {"code": match[0]})
        return

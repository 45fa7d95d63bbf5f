"""Finds scripts that start ranks with ``torch.distributed.launch``.

It is an old name of torchrun that still passes ``--local-rank`` to the program, under another spelling since torch
2.0, and leaves out what torchrun does for ranks that fail. With ``--use-env`` nothing else changes; without it the
program has to read ``LOCAL_RANK`` from its environment.

Bad::

    #!/bin/bash
    python -m torch.distributed.launch --use_env --nproc_per_node=4 train.py --epochs 10

Bad::

    CUDA_VISIBLE_DEVICES=0,1 python3 -m torch.distributed.launch \\
        --nproc_per_node 2 train.py

Good::

    #!/bin/bash
    torchrun --nproc_per_node=4 train.py --epochs 10
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C330",
    "deprecated-launcher",
    WARNING,
    mark("`{code}` is the old launcher, and it passes `--local-rank` to a program that may not know it"),
    mark("Start it with `torchrun`, and read the rank from `LOCAL_RANK` in the environment"),
    confidence=CERTAIN,
    since=(1, 10),
)
FILES = ("shell", "dockerfile", "makefile", "markdown", "compose", "yaml")

_LAUNCH = re.compile(
    r"(?P<python>(?<![\w./$-])python3?[ \t]+)?(?P<options>-u[ \t]+)?-m[ \t]+torch\.distributed\.launch\b"
    r"(?P<rest>[^\r\n;&|]*)"
)
_USE_ENV = re.compile(r"[ \t]+--use[-_]env\b")


def look(text: Text) -> Iterator[Hit]:
    """``python -m torch.distributed.launch`` becomes torchrun; with another interpreter, torch.distributed.run."""
    for match in _LAUNCH.finditer(text.commands):
        end = match.start("rest")
        plain = match["python"] and not match["options"]
        changes = [(match.start(), end, "torchrun") if plain else (end - len("launch"), end, "run")]
        use_env = _USE_ENV.search(match["rest"])
        if use_env:
            changes.append((end + use_env.start(), end + use_env.end(), ""))
        yield Hit((match.start(), end), {"code": match[0][: end - match.start()]}, tuple(changes), bool(use_env))

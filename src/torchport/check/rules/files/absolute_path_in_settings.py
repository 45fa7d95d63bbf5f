"""Finds paths in settings that exist on one machine only.

A path below somebody's home folder is nowhere else: the run in a container or on a cluster fails when it first
reads its data, or writes its checkpoints into the container, where they are lost.

Bad::

    data:
      root: /home/alice/datasets/imagenet
      workers: 8

Bad::

    checkpoint: C:\\Users\\alice\\runs\\best.pt

Good::

    data:
      root: ${DATA_ROOT:-data/imagenet}
      workers: 8

Good::

    cache: /home/jovyan/.cache
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchport.check.rule import LIKELY, WARNING, Hit, Rule
from torchport.check.texts import Text
from torchport.text import mark

META = Rule(
    "C964",
    "absolute-path-in-settings",
    WARNING,
    mark("`{code}` is a path on one machine: it is not there in a container or on another computer"),
    mark("Write it relative to the project, or take it from the environment"),
    confidence=LIKELY,
)
FILES = ("yaml",)

_VALUE = re.compile(
    r"(?:^|:|-)[ \t]+[\"']?(?P<path>(?:/home/|/Users/)(?P<user>[\w.-]+)/[^\s\"'#]*|[A-Za-z]:\\{1,2}[\w.-][^\s\"'#]*)",
    re.MULTILINE,
)
# Users of well-known images and build machines: there the path is that of the container.
_CONTAINERS = frozenset("jovyan runner vscode user app ubuntu circleci docker root ec2-user node".split())


def look(text: Text) -> Iterator[Hit]:
    """Values that begin with a home folder or a drive."""
    if ".github/" in text.path:
        return
    for match in _VALUE.finditer(text.commands):
        if match["user"] not in _CONTAINERS:
            yield Hit(match.span("path"), {"code": match["path"]})

r"""Finds paths that only the author's machine has.

Bad::

    import torch

    state = torch.load("/home/alice/runs/last.pt", map_location="cpu")
    data = "C:\\Users\\alice\\data\\train.csv"

Good::

    import os

    import torch

    state = torch.load(os.environ.get("CHECKPOINT", "runs/last.pt"), map_location="cpu")
    data = "/data/train.csv"  # where a container mounts it
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C901",
    "absolute-local-path",
    WARNING,
    mark("`{path}` exists on one machine alone"),
    mark("Take it from an argument or the environment, or make it relative to the project"),
    confidence=CERTAIN,
)
_LOCAL = re.compile(
    r"(?:~[a-z]\w*/|/home/[^/\s]+|/Users/[^/\s]+|/root/|/export/home/[^/\s]+|/mnt/[a-z]/|/content/(?:g?drive|sample_data)"
    r"|/kaggle/(?:input|working)|[A-Zc-g]:(?:\\(?!Windows|Program)|/(?!/|Windows|Program)))(?:[^\s:].*)?"
)
_MOST_LETTERS = 300


def look(source: Source) -> Iterator[Hit]:
    """Strings that are such a path from their first letter on; not those that are compared, or a text by themselves."""
    for node in source.nodes(ast.Constant):
        text = node.value
        if not isinstance(text, str) or not 3 < len(text) < _MOST_LETTERS or "\n" in text:
            continue
        may_be = text[0] in "/~" or text[1] == ":"
        if may_be and _LOCAL.fullmatch(text) and not _is_no_path(source, node):
            yield Hit(node, {"path": text})


def _is_no_path(source: Source, node: ast.Constant) -> bool:
    """Whether a string is a text, a pattern, or what is taken where the environment says nothing."""
    above = source.parent(node)
    if isinstance(above, ast.JoinedStr):
        return above.values[0] is not node
    if isinstance(above, ast.keyword):
        return above.arg in ("help", "description", "epilog", "usage")
    if isinstance(above, ast.Call):
        name = source.name(above.func)
        return name in ("os.getenv", "os.environ.get", "os.environ.setdefault") or name.startswith("re.")
    return isinstance(above, (ast.Expr, ast.Compare))

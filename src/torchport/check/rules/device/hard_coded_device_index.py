"""Finds ``cuda:1``, ``.cuda(1)`` and other GPUs that are named by number.

Another machine may have one GPU only: ``invalid device ordinal``. Which GPU a program uses is chosen outside of it,
by an argument or by ``CUDA_VISIBLE_DEVICES``.

Bad::

    import torch

    device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")

Good::

    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

Bad::

    import torch
    from torch import nn

    torch.cuda.set_device(2)
    model = nn.DataParallel(nn.Linear(4, 2).cuda(2), device_ids=[2, 3])

Good::

    import os

    import torch
    from torch import nn

    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    model = nn.Linear(4, 2).to("cuda:0")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import INFO, WARNING, Change, Hit, Rule
from torchport.check.rules.moves import COUNTS, is_guarded
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C123",
    "hard-coded-device-index",
    WARNING,
    mark("`{code}` needs a machine with at least {count} GPUs"),
    mark("Name no number: `cuda` is the current GPU, and `CUDA_VISIBLE_DEVICES` or an argument says which one that is"),
)

_INDEX = re.compile(r"cuda:(\d+)")
_NUMBERED = ("device_ids", "output_device")


def look(source: Source) -> Iterator[Hit]:
    """Numbers from 1 up; a file that names several GPUs shares its model among them and means it."""
    found = list(_places(source))
    several = len({index for node, index, _changes in found if isinstance(node, ast.Constant)}) > 1
    for node, index, changes in found:
        words = {"code": source.code(node), "count": index + 1}
        if index > 0 and not is_guarded(source, node, COUNTS):
            yield Hit(node, words, () if several else changes, severity=INFO if several else None)


def _places(source: Source) -> Iterator[tuple[ast.expr, int, tuple[Change, ...]]]:
    for node in source.nodes(ast.Constant):
        match = _INDEX.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is not None and _is_used(source, node):
            quoted = source.code(node)
            changes = () if not quoted.endswith(f"{match[0]}{quoted[0]}") else (replace(source, node, '"cuda"'),)
            yield node, int(match[1]), changes
    for call in source.calls(".cuda", "torch.cuda.set_device"):
        index = constant(argument(call, "device", 0))
        if type(index) is int and (isinstance(call.func, ast.Attribute) or not call.keywords):
            yield call, index, ()
    for call in source.calls("torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"):
        for keyword in call.keywords:
            ids = keyword.value.elts if isinstance(keyword.value, (ast.List, ast.Tuple)) else [keyword.value]
            numbers = [constant(each) for each in ids]
            if keyword.arg in _NUMBERED and numbers and all(type(each) is int for each in numbers):
                yield keyword.value, max(numbers), ()


def _is_used(source: Source, node: ast.Constant) -> bool:
    """Whether a text is a device that the program uses: not a key, not a default that a user can change."""
    above = source.parent(node)
    while isinstance(above, ast.IfExp):
        above = source.parent(above)
    if isinstance(above, ast.Call):
        method = above.func.attr if isinstance(above.func, ast.Attribute) else ""
        return method in ("to", "device") or source.name(above.func) in ("torch.device", "torch.load")
    if isinstance(above, ast.keyword):
        return above.arg in ("device", "map_location")
    if isinstance(above, ast.Assign):
        return any("device" in source.code(each).lower() for each in above.targets)
    return False

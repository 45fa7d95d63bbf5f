"""Finds a seed given to the GPUs once more.

``torch.manual_seed`` has seeded all of them already.

Bad::

    import torch

    seed = 3
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)

Good::

    import torch

    seed = 3
    torch.manual_seed(seed)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import block, remove_statement
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C705",
    "seed-cuda-explicit",
    INFO,
    mark("`torch.manual_seed` has seeded every GPU already"),
    mark("Leave this line out"),
    confidence=CERTAIN,
    since=(0, 4),
)
_ON_GPU = ("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")


def look(source: Source) -> Iterator[Hit]:
    """The same seed in one block, with nothing but other settings between."""
    for call in source.calls(*_ON_GPU):
        statement = source.statement(call)
        around = block(source, statement)
        if source.parent(call) is not statement or statement not in around:
            continue
        for earlier in reversed(around[: around.index(statement)]):
            if _is_seed(source, earlier, call):
                yield Hit(call, changes=(remove_statement(source, statement),), safe=True)
                break
            if not _is_setting(source, earlier):
                break


def _is_seed(source: Source, statement: ast.stmt, call: ast.Call) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(args=[given]) as other) if source.name(other.func) == "torch.manual_seed":
            return len(call.args) == 1 and source.code(given) == source.code(call.args[0])
    return False


def _is_setting(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement only sets something: a seed, or an option of cuDNN."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "seed" in source.code(statement.value.func)
    target = source.code(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    return "environ" in target or "cudnn" in target

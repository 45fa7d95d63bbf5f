"""Finds ``CUDA_VISIBLE_DEVICES`` set after torch was imported.

It is read when CUDA starts, once. Whatever asks for a GPU before, an imported module too, makes the line worthless:
the program then runs on GPU 0, which may be another's.

Bad::

    import os
    import torch

    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    model = torch.nn.Linear(4, 2).cuda()

Good::

    import os
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    import torch

    model = torch.nn.Linear(4, 2).cuda()

Good::

    import os
    import torch

    def main(args):
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import before, remove_statement
from torchport.check.rule import ERROR, LIKELY, POSSIBLE, WARNING, Change, Hit, Rule
from torchport.check.rules.environment import sets
from torchport.check.rules.loading import puts_on_gpu
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C904",
    "cuda-visible-devices-late",
    WARNING,
    mark("`CUDA_VISIBLE_DEVICES` is set after {what} in line {line}: it may not count any more"),
    mark("Set it before `import torch`; better, outside, when the program is started"),
)
_STARTS = (
    "torch.cuda.is_available",
    "torch.cuda.init",
    "torch.cuda.set_device",
    "torch.cuda.current_device",
    "torch.cuda.get_device_name",
    "torch.cuda.get_device_properties",
)


def look(source: Source) -> Iterator[Hit]:
    """An error behind what starts CUDA in the same block; a warning at the top of a module behind ``import torch``."""
    imports: list[ast.Import | ast.ImportFrom] = [*source.nodes(ast.Import), *source.nodes(ast.ImportFrom)]
    imports = [each for each in imports if _is_torch(each)]
    starts = [*source.calls(*_STARTS), *(each for each in source.nodes(ast.Call) if puts_on_gpu(source, each))]
    for statement, value in sets(source, "CUDA_VISIBLE_DEVICES"):
        earlier = [
            call
            for call in starts
            if call.lineno < statement.lineno
            and source.function(call) is source.function(statement)
            and source.parent(source.statement(call)) is source.parent(statement)
        ]
        if earlier:
            words = {"what": f"`{source.code(earlier[0].func)}()`", "line": earlier[0].lineno}
            yield Hit(statement, words, severity=ERROR, confidence=LIKELY)
        elif source.parent(statement) is source.tree:
            late = [each for each in imports if each.lineno < statement.lineno and source.parent(each) is source.tree]
            if late:
                first = min(late, key=lambda each: each.lineno)
                words = {"what": f"`{source.code(first)}`", "line": first.lineno}
                edits = _earlier(source, statement, value, first)
                yield Hit(statement, words, edits, safe=True, confidence=POSSIBLE)


def _is_torch(statement: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
    return any(name.split(".")[0] in ("torch", "torchvision", "pytorch_lightning", "lightning") for name in names)


def _earlier(source: Source, statement: ast.stmt, value: ast.expr, first: ast.stmt) -> tuple[Change, ...]:
    """The same line in front of the import, where it needs nothing that comes later."""
    found = source.scope.find("os")
    ready = found is not None and all(getattr(way.node, "lineno", 0) < first.lineno for way in found[1])
    if not ready or constant(value) is None or not isinstance(statement, ast.Assign):
        return ()
    return before(source, first, source.code(statement)), remove_statement(source, statement)

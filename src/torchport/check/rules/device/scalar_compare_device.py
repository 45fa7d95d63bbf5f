"""Finds a tensor that goes to ``.cuda()`` if another one ``is_cuda``.

That is the current GPU, and not the one where the other tensor is; ``.to(x.device)`` goes there, and to the CPU too.

Bad::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(4)
            if x.is_cuda:
                mask = mask.cuda()
            return x * mask

Good::

    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            mask = torch.ones(4)
            mask = mask.to(x.device)
            return x * mask

Bad::

    import torch

    def like(x):
        kind = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor
        return kind(3)

Good::

    import torch

    def like(x):
        if x.is_cuda:
            torch.cuda.synchronize()
        return x.new_empty(3)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import LIKELY, WARNING, Change, Hit, Rule
from torchport.check.rules.moves import is_cuda_type
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C135",
    "scalar-compare-device",
    WARNING,
    mark("`{code}` decides for the current GPU, which need not be the one of `{name}`"),
    mark("Use `{name}.device`: `.to({name}.device)`, `torch.zeros(…, device={name}.device)`"),
    confidence=LIKELY,
)


def look(source: Source) -> Iterator[Hit]:
    """``if x.is_cuda`` around ``.cuda()`` with no number, or around a tensor type of CUDA."""
    for test in source.nodes(ast.Attribute):
        above = source.parent(test)
        if test.attr != "is_cuda" or not isinstance(above, (ast.If, ast.IfExp)) or above.test is not test:
            continue
        body = above.body if isinstance(above.body, list) else [above.body]
        if any(_goes_to_current(source, node) for part in body for node in ast.walk(part)):
            words = {"code": source.code(test), "name": source.code(test.value)}
            yield Hit(test, words, _repair(source, above, test))


def _goes_to_current(source: Source, node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and is_cuda_type(source.name(node)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "cuda"
        and not node.args
        and not node.keywords
        and not source.name(node.func)
    )


def _repair(source: Source, above: ast.If | ast.IfExp, test: ast.Attribute) -> tuple[Change, ...]:
    """One statement that moves one name, and no else."""
    match above:
        case ast.If(
            body=[
                ast.Assign(targets=[ast.Name(id=kept)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=moved))))
            ],
            orelse=[],
        ) if kept == moved:
            if not source.indent(above) and source.position(source.span(above)[0])[1] != 1:
                return ()  # an elif
            if source.text[source.span(above)[0] :].startswith("if"):
                return (replace(source, above, f"{kept} = {moved}.to({source.code(test.value)}.device)"),)
    return ()

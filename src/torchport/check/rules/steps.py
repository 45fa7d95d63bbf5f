"""The loop over batches of a training: where it is, and what runs in each of its rounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rules.kinds import is_loader
from torchport.check.source import Source

_PASSED_THROUGH = ("enumerate", "tqdm", "iter", "zip", "track", "islice", "trange")


def looped_over(loop: ast.For | ast.comprehension) -> list[ast.expr]:
    """What a loop runs over, behind ``enumerate``, ``tqdm`` and their like."""
    waiting, found = [loop.iter], []
    while waiting:
        node = waiting.pop()
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if isinstance(node, ast.Call) and name in _PASSED_THROUGH:
            waiting += node.args
        else:
            found.append(node)
    return found


def is_batch_loop(source: Source, loop: ast.AST) -> bool:
    """Whether a loop runs over a data loader."""
    return isinstance(loop, ast.For) and any(is_loader(source, each) for each in looped_over(loop))


def step_loops(source: Source) -> list[ast.For | ast.While]:
    """The innermost loops with ``.backward()`` in them, and the loops over a data loader with an inner one."""
    found: dict[ast.For | ast.While, None] = {}
    for call in source.calls(".backward"):
        for loop in source.loops(call)[:1]:
            found[loop] = None
    for loop in source.nodes(ast.For):
        if is_batch_loop(source, loop):
            found[loop] = None
    return list(found)


def every_round(source: Source, loop: ast.For | ast.While, node: ast.AST) -> bool:
    """Whether a node runs in each round of a loop: under no condition, in no handler, in no function of its own."""
    child = node
    for above in source.ancestors(node):
        if above is loop:
            return True
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ExceptHandler)):
            return False
        if isinstance(above, (ast.If, ast.IfExp)) and child is not above.test:
            return False
        child = above
    return False


def names_bound(loop: ast.AST) -> set[str]:
    """The names that a loop gives a value."""
    return {each.id for each in ast.walk(loop) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def names_read(node: ast.AST) -> Iterator[str]:
    """The names that an expression reads."""
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))

"""Training: the loop of a file whose rounds take an optimizer step, and the parts that recipes ask for."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchport.check.rules.steps import looped_over
from torchport.check.rules.training import backwards, loss_of, optimizer_steps, stepped
from torchport.check.source import Source
from torchport.migrate.tree import Tree

Loop = ast.For | ast.While


@dataclass(frozen=True, slots=True)
class Training:
    """One ``backward`` with the ``step`` that follows it; ``loop`` is the innermost loop around both, ``epochs`` the
    one around that.
    """

    path: str
    source: Source
    loop: Loop
    epochs: Loop | None
    backward: ast.Call
    loss: ast.expr | None
    step: ast.Call
    optimizer: ast.expr

    @property
    def batches(self) -> ast.expr | None:
        """What the loop runs over, behind ``enumerate`` and its like."""
        over = looped_over(self.loop) if isinstance(self.loop, ast.For) else []
        return next((each for each in over if not isinstance(each, ast.Constant)), None)


def trainings(tree: Tree) -> list[Training]:
    """The training loops of a project, file by file."""
    found: list[Training] = []
    for path in tree.paths():
        source = tree.read(path)
        if source is not None and ".backward" in source.text:
            found += _trainings(path, source)
    return found


def _trainings(path: str, source: Source) -> list[Training]:
    found: list[Training] = []
    steps = optimizer_steps(source)
    for call in backwards(source):
        loops = source.loops(call)
        for depth, loop in enumerate(loops):
            inside = [each for each in steps if loop in source.loops(each) and each.lineno >= call.lineno]
            optimizer = stepped(source, inside[0]) if inside else None
            if optimizer is not None:
                around = loops[depth + 1] if depth + 1 < len(loops) else None
                found.append(Training(path, source, loop, around, call, loss_of(call), inside[0], optimizer))
                break
    return found

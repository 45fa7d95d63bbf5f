"""Training: the loop of a file whose rounds take an optimizer step, and the parts that recipes ask for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check.rules.steps import looped_over
from torchport.check.rules.training import backwards, loss_of, optimizer_steps, stepped
from torchport.check.source import Source, argument
from torchport.migrate.passing import callers
from torchport.migrate.program import program
from torchport.migrate.recipe import Unsuited
from torchport.migrate.tree import Tree
from torchport.text import _

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


def read_program(tree: Tree, entry: str) -> list[Source]:
    """The sources of a program. Raises Unsuited where the entry cannot be read."""
    found = [source for path in program(tree, entry) if (source := tree.read(path)) is not None]
    if not found:
        raise Unsuited(_("{entry} cannot be read").format(entry=entry))
    return found


def epochs(source: Source, training: Training) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The loops around a loop over batches, in its function or around the calls of that, with the loader there."""
    batches = training.batches
    if batches is None:
        return
    if training.epochs is not None:
        yield training.epochs, batches
    function = source.function(training.loop)
    if function is None or not isinstance(batches, ast.Name):
        return
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    for call in callers(source, function):
        given = argument(call, batches.id, names.index(batches.id)) if batches.id in names else batches
        for loop in source.loops(call)[:1]:
            if given is not None:
                yield loop, given


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

"""Finds a DistributedSampler that is never told the epoch.

It shuffles by its seed and the epoch. Without ``set_epoch`` every epoch sees the data in the same order, and each
rank the same part of it.

Bad::

    from torch.utils.data import DataLoader, DistributedSampler


    def main(data, train_step):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        for epoch in range(10):
            for batch in loader:
                train_step(batch)

Good::

    from torch.utils.data import DataLoader, DistributedSampler


    def main(data, train_step):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        for epoch in range(10):
            sampler.set_epoch(epoch)
            for batch in loader:
                train_step(batch)

Good::

    from torch.utils.data import DataLoader, DistributedSampler


    def evaluate(data, model):
        sampler = DistributedSampler(data, shuffle=False)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        for epoch in range(3):
            for batch in loader:
                model(batch)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.rules.ranks import SAMPLER
from torchport.check.rules.steps import looped_over
from torchport.check.rules.words import code_of
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C303",
    "sampler-no-set-epoch",
    WARNING,
    mark("`{code}` is never told the epoch: each epoch sees the data in the same order"),
    mark("Call `{name}.set_epoch({epoch})` at the beginning of each epoch"),
)


def look(source: Source) -> Iterator[Hit]:
    """Shuffling samplers, where the file knows no ``set_epoch`` and goes through their loader in a loop of epochs."""
    if not source.calls(SAMPLER) or "set_epoch" in code_of(source):
        return
    loaders: dict[ast.expr, list[ast.Call]] = {}
    for call in source.calls("torch.utils.data.DataLoader"):
        sampler = argument(call, "sampler", 3)
        for value in source.values(sampler) if sampler is not None else ():
            loaders.setdefault(value, []).append(call)
    for call in source.calls(SAMPLER):
        if constant(argument(call, "shuffle", 3)) is False:
            continue
        for loop in epoch_loops(source, loaders.get(call, [])):
            name = _name(source, call, loop)
            epoch = loop.target.id if isinstance(loop.target, ast.Name) else ""
            fix: tuple[Change, ...] = ()
            if name and epoch and epoch != "_" and source.indent(loop.body[0]):
                fix = (changes.before(source, loop.body[0], f"{name}.set_epoch({epoch})"),)
            words = {"code": source.code(call), "name": name or "sampler", "epoch": epoch or "epoch"}
            yield Hit(call, words, fix)
            break


def epoch_loops(source: Source, loaders: list[ast.Call]) -> Iterator[ast.For]:
    """Loops around a loop over one of these loaders, or around a call that is given one."""
    for inner in source.nodes(ast.For):
        if any(value in loaders for each in looped_over(inner) for value in source.values(each)):
            yield from (loop for loop in source.loops(inner) if isinstance(loop, ast.For))
    for call in source.nodes(ast.Call):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(each, ast.Name) and set(source.values(each)) & set(loaders) for each in given):
            for loop in source.loops(call):
                if isinstance(loop, ast.For) and "epoch" in source.code(loop.target):
                    yield loop


def _name(source: Source, call: ast.Call, loop: ast.For) -> str:
    """The one name of the sampler, where it has that alone and in the function of the loop."""
    match source.parent(call):
        case ast.Assign(targets=[ast.Name(id=name)]) if source.function(call) is source.function(loop):
            found = source.scope_at(loop).find(name)
            return name if found is not None and len(found[1]) == 1 else ""
    return ""

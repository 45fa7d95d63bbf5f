"""Writes curves for TensorBoard: the loss, accuracy and learning rate that the training prints.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train(epoch, loader):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 10 == 0:
                print('Epoch: {} [{}/{}]\\tLoss: {:.6f}'.format(epoch, i, len(loader), loss.item()))


    def test(loader):
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
        print("Test set: accuracy %.2f (%d)" % (right / len(loader.dataset), right))


    def main(loader):
        for epoch in range(1, 4):
            train(epoch, loader)
            test(loader)
        print("done")

Good::

    import torch
    from torch import nn
    from torch.utils.tensorboard import SummaryWriter

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def train(epoch, loader, writer):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % 10 == 0:
                print('Epoch: {} [{}/{}]\\tLoss: {:.6f}'.format(epoch, i, len(loader), loss.item()))
                writer.add_scalar('train/loss', loss.item(), (epoch - 1) * len(loader) + i)


    def test(loader, epoch, writer):
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
        print("Test set: accuracy %.2f (%d)" % (right / len(loader.dataset), right))
        writer.add_scalar("test/accuracy", right / len(loader.dataset), epoch)


    def main(loader):
        writer = SummaryWriter()
        for epoch in range(1, 4):
            train(epoch, loader, writer)
            test(loader, epoch, writer)
        writer.close()
        print("done")

Bad::

    import torch

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x in torch.rand(8, 2, 4):
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, lr {optimizer.param_groups[0]['lr']}")

Good::

    import torch
    from torch.utils.tensorboard import SummaryWriter

    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = SummaryWriter()
    for epoch in range(3):
        for x in torch.rand(8, 2, 4):
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, lr {optimizer.param_groups[0]['lr']}")
        writer.add_scalar("train/loss", loss.item(), epoch)
        writer.add_scalar("train/lr", optimizer.param_groups[0]['lr'], epoch)
    writer.close()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import last_name
from torchport.check.rules.words import code_of
from torchport.check.source import Source
from torchport.migrate.imports import imported
from torchport.migrate.passing import passed
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.rounds import Rounds, rounds
from torchport.migrate.scalars import Scalar, held_out, scalars
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_WRITES = re.compile(r"SummaryWriter|\bwandb\b|mlflow|\baim\b|comet_ml|clearml|swanlab|neptune")


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """A writer around the outermost loop of the training, and a point beside each number that is printed."""
    sources = read_program(tree, entry)
    if any(_WRITES.search(code_of(each)) for each in sources):
        raise Unsuited(_("the project writes its curves already"))
    for source in sources:
        edits = _written(source)
        if edits:
            yield {source.path: edits}
            return
    raise Unsuited(_("no loss or accuracy is printed where it is plain which round it belongs to"))


def _written(source: Source) -> list[Change]:
    """The changes of one file: the points that belong to its outermost loop of a training."""
    points: list[tuple[Rounds, ast.Call, list[Scalar]]] = []
    for call in filter(_says, source.nodes(ast.Call)):
        at = rounds(source, call)
        found = scalars(source, call) if at is not None and source.indent(source.statement(call)) else []
        if at is not None and found:
            points.append((at, call, found))
    if not points:
        return []
    outer = points[0][0].outer
    import_name, edits = imported(source, "torch.utils.tensorboard", "SummaryWriter")
    name = "writer" if "writer" not in source.text else "board"
    taken: set[str] = set()
    shared: dict[Change, None] = {}
    for at, call, found in points:
        way = _known(source, name, call, at) if at.outer is outer else None
        lines = [line for each in found if (line := _line(source, name, call, each, at.step, taken))]
        if way is None or not lines:
            continue
        edits.append(changes.after(source, source.statement(call), *lines))
        shared |= dict.fromkeys(way)
    if not taken:
        return []
    edits += [
        *shared,
        changes.before(source, outer, f"{name} = {import_name}()"),
        changes.after(source, outer, f"{name}.close()"),
    ]
    return edits


def _known(source: Source, name: str, call: ast.Call, at: Rounds) -> list[Change] | None:
    """What makes the writer known at a place, and the number of the round."""
    ways = [passed(source, each, call, at.outer) for each in (name, at.passed) if each]
    return None if None in ways else [change for way in ways for change in way or ()]


def _line(source: Source, writer: str, call: ast.Call, each: Scalar, step: str, taken: set[str]) -> str:
    """One point of a curve; nothing where another place writes one of that name."""
    function = source.function(call)
    where = each.data or held_out(function.name.replace("_", " ") if function is not None else "") or "train"
    tag = f"{where}/{each.tag}"
    if tag in taken:
        tag += "_of_epoch"
    if tag in taken or "\n" in source.code(each.value):
        return ""
    taken.add(tag)
    quote = "'" if re.match(r"[rfRF]*'", source.code(call.args[0])) else '"'
    return f"{writer}.add_scalar({quote}{tag}{quote}, {source.code(each.value)}, {step})"


def _says(call: ast.Call) -> bool:
    """Whether a call tells the user something: ``print``, or a logger's ``info``."""
    match call.func:
        case ast.Name(id="print"):
            return bool(call.args)
        case ast.Attribute(value=owner, attr="info"):
            return bool(call.args) and "log" in last_name(owner).lower()
    return False


META = Recipe("tensorboard", mark("curves for TensorBoard"), variants, needs="tensorboard")

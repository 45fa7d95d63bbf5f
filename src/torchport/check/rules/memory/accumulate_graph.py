"""Finds losses that are kept with their graphs.

``total += loss`` joins the graphs of all steps, ``losses.append(loss)`` keeps each: memory grows until the GPU has
none left. What is kept for the report needs no gradient.

Bad::

    import torch


    def train(model, loader, optimizer, criterion):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss
        print(total / len(loader))

Good::

    import torch


    def train(model, loader, optimizer, criterion):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(total / len(loader))

Bad::

    import torch


    def train(model, loader, optimizer, criterion):
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses

Good::

    import torch


    def train(model, batches, optimizer, criterion):
        for batch in batches:
            loss = 0
            for x, y in batch:
                loss += criterion(model(x), y)
            loss.backward()
            optimizer.step()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.ranks import home
from torchport.check.rules.training import backwards, last_name, loss_of
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C601",
    "accumulate-graph",
    WARNING,
    mark("`{code}` keeps the graph of each step: memory grows as long as the loop runs"),
    mark("Keep `{name}.detach()`, or `{name}.item()` where a number will do"),
)


def look(source: Source) -> Iterator[Hit]:
    """What a loop adds up or appends, where the same loop calls ``backward`` on it under the same name."""
    losses = [(call, loss_of(call)) for call in backwards(source)]
    for call, loss in losses:
        loops = source.loops(call)
        if not isinstance(loss, ast.Name) or not loops or _is_detached(source, loss):
            continue
        for node in source.nodes(ast.Name):
            if node.id != loss.id or not isinstance(node.ctx, ast.Load) or source.loops(node)[:1] != loops[:1]:
                continue
            kept = _keeper(source, node)
            if kept is None or _is_wanted(source, kept, losses):
                continue
            statement = source.statement(node)
            end = source.span(node)[1]
            words = {"code": source.code(statement), "name": loss.id}
            yield Hit(statement, words, ((end, end, ".detach()"),), safe=True)


def _keeper(source: Source, node: ast.Name) -> ast.expr | None:
    """What keeps a loss beyond its step: the sum that it is added to, or the list that it is appended to."""
    child: ast.AST = node
    above = source.parent(node)
    while isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Mult, ast.Div)):
        child, above = above, source.parent(above)
    match above:
        case ast.AugAssign(target=target, op=ast.Add(), value=value) if value is child:
            return target if last_name(target) != node.id else None
        case ast.Assign(targets=[ast.Name() as target], value=ast.BinOp(left=ast.Name(id=old))) if child is not node:
            return target if target.id == old != node.id else None
        case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[given]) if given is child:
            return target if isinstance(source.parent(above), ast.Expr) else None
    return None


def _is_detached(source: Source, loss: ast.Name) -> bool:
    """Whether the name stands for a number, or for a part of a step, somewhere in its function."""
    found = source.scope_at(loss).find(loss.id)
    ways = found[1] if found is not None else []
    texts = [source.code(way.value) for way in ways if way.value is not None]
    return any(text.endswith((".item()", ".detach()", ".data", ".tolist()")) or text[:6] == "float(" for text in texts)


def _is_wanted(source: Source, kept: ast.expr, losses: list[tuple[ast.Call, ast.expr | None]]) -> bool:
    """Whether a backward starts at what is kept, or at what is made of it; or whether it begins anew in the loop."""
    name = last_name(kept)
    if not name:
        return True
    starts = [loss for _call, loss in losses if loss is not None]
    wanted = {each.id for loss in starts for each in ast.walk(loss) if isinstance(each, ast.Name)}
    if name in wanted:
        return True
    for node in source.nodes(ast.Name):
        if node.id == name and isinstance(node.ctx, ast.Load) and home(source, node) is home(source, kept):
            statement = source.statement(node)
            if isinstance(statement, ast.Assign) and any(last_name(each) in wanted for each in statement.targets):
                return True
    own = source.statement(kept)
    return any(
        isinstance(each, ast.Assign) and each is not own and any(last_name(target) == name for target in each.targets)
        for each in source.loops(kept)[0].body
    )

"""Finds a layer that is put into a model after the model was moved.

The new layer is on the CPU, where layers are made; the others are not.

Bad::

    import torch
    from torch import nn
    from torchvision import models

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = models.resnet18().to(device)
    model.fc = nn.Linear(512, 10)

Good::

    import torch
    from torch import nn
    from torchvision import models

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = models.resnet18().to(device)
    model.fc = nn.Linear(512, 10).to(device)

Bad::

    from torch import nn
    from torchvision import models

    def build(classes):
        model = models.vgg16()
        model.cuda()
        model.classifier[6] = nn.Linear(4096, classes)
        return model

Good::

    from torch import nn
    from torchvision import models

    def build(classes):
        model = models.vgg16()
        model.classifier[6] = nn.Linear(4096, classes)
        model.cuda()
        return model
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.layers import has_weights
from torchport.check.rules.moves import is_cpu, moves, target
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C130",
    "module-replaced-after-move",
    ERROR,
    mark("`{name}` was moved before: the new `{layer}` stays on the CPU"),
    mark("Move the new layer too, or the model after all its layers are in"),
)


def look(source: Source) -> Iterator[Hit]:
    """``model.layer = nn.Linear(…)`` behind ``model.to(device)`` in one block, with no move that follows."""
    for node in source.nodes(ast.Assign):
        if len(node.targets) != 1 or not has_weights(source, node.value):
            continue
        root = _root(node.targets[0])
        placed = any(isinstance(part, ast.keyword) and part.arg == "device" for part in ast.walk(node.value))
        if root is None or placed or (isinstance(node.value, ast.Call) and moves(source, node.value)):
            continue
        move = _moved(source, node, root.id)
        if move is not None:
            end = source.span(node)[1]
            assert isinstance(move.func, ast.Attribute)
            text = "." + source.text[source.span(move)[1] - _length(source, move) : source.span(move)[1]].lstrip(". \n")
            changes = ((end, end, text),) if isinstance(node.value, ast.Call) and "\n" not in text else ()
            words = {"name": root.id, "layer": source.code(node.value)}
            yield Hit(node, words, changes, safe=True, seen=((source.span(move)[0], mark("moved here")),))


def _length(source: Source, move: ast.Call) -> int:
    assert isinstance(move.func, ast.Attribute)
    return source.span(move)[1] - source.span(move.func.value)[1]


def _root(node: ast.expr) -> ast.Name | None:
    """The name at the left of ``model.head.fc`` or ``model.classifier[6]``; self is no model here."""
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return None
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node if isinstance(node, ast.Name) and node.id != "self" else None


def _moved(source: Source, node: ast.Assign, name: str) -> ast.Call | None:
    """The last move of a name ahead of a statement in its block; None if the name is moved or made again later."""
    above = source.parent(node)
    block = getattr(above, "body", [])
    if not any(each is node for each in block):
        return None
    found = None
    behind = False
    for statement in block:
        if statement is node:
            behind = True
            continue
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        given = any(isinstance(each, ast.Name) and each.id == name for each in targets)
        if isinstance(value, ast.Call) and moves(source, value) and _starts_with(value, name, given):
            device = target(source, value)
            if behind:
                return None
            found = value if device is None or not is_cpu(source, device) else None
        elif given:
            found = None if not behind else found
    return found if not _moves_later(source, node, name) else None


def _starts_with(call: ast.Call, name: str, given: bool) -> bool:
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    return given or (isinstance(value, ast.Name) and value.id == name)


def _moves_later(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether the model, or a part of it, is moved anywhere behind the statement."""
    start = source.span(node)[1]
    for call in source.calls(".to", ".cuda"):
        root = _root(call.func)
        if root is not None and root.id == name and source.span(call)[0] > start:
            return True
    return False

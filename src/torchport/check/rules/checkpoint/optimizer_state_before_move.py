"""Finds an optimizer that gets its state back before the model is moved.

``load_state_dict`` puts the state where the parameters are at that moment. If the model goes to the GPU afterwards,
the momentum stays behind on the CPU, and the first step fails on tensors of two devices.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    model.to("cuda")

Good::

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load("last.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    model.to("cuda")
    optimizer.load_state_dict(checkpoint["optimizer"])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C807",
    "optimizer-state-before-move",
    ERROR,
    mark("`{code}` puts the state where `{model}` is now, and `{model}` is moved only in line {line}"),
    mark("Move `{model}` first, then load the state of its optimizer"),
)


def look(source: Source) -> Iterator[Hit]:
    """In one function: the state is loaded, and further down the model of the same optimizer is moved."""
    for call in source.calls(".load_state_dict"):
        model = _model(source, call)
        if not model:
            continue
        moves = [
            move
            for move in source.calls(".to", ".cuda")
            if _receiver(move) == model and _is_gpu(move) and source.function(move) is source.function(call)
        ]
        later = [move for move in moves if move.lineno > call.lineno]
        if later and len(later) == len(moves) and not _apart(source, call, later[0]):
            words = {"code": source.code(call), "model": model, "line": later[0].lineno}
            yield Hit(call, words, seen=((source.span(later[0])[0], mark("moved here")),))


def _model(source: Source, call: ast.Call) -> str:
    """The name of the model whose parameters an optimizer has, where ``call`` loads the optimizer's state."""
    receiver = getattr(call.func, "value", None)
    for made in source.values(receiver) if receiver is not None else ():
        if isinstance(made, ast.Call) and source.name(made.func).startswith("torch.optim."):
            match argument(made, "params", 0):
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="parameters")):
                    return name
    return ""


def _receiver(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return name
    return ""


def _is_gpu(call: ast.Call) -> bool:
    """Not ``model.to("cpu")``, nor ``model.to(torch.float16)``."""
    given = call.args[0] if call.args else None
    return constant(given) != "cpu" and not (isinstance(given, ast.Attribute) and given.attr.startswith("float"))


def _apart(source: Source, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places are in different branches of one ``if``."""
    for above in source.ancestors(one):
        if isinstance(above, ast.If):
            in_body = any(each in above.body for each in [one, *source.ancestors(one)])
            if any(each in above.body for each in source.ancestors(other)) != in_body and any(
                each is above for each in source.ancestors(other)
            ):
                return True
    return False

"""Finds ``Variable(…)``, which has had no meaning since torch 0.4.

Tensors do all that it did. It still makes another tensor, cut off from the graph of the first.

Bad::

    import torch
    from torch.autograd import Variable

    images = Variable(torch.randn(8, 3)).cuda()
    weights = Variable(torch.zeros(3), requires_grad=True)

Good::

    import torch
    from torch.autograd import Variable

    images = torch.randn(8, 3).cuda()
    weights = torch.zeros(3).requires_grad_()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_statement, replace
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.graphs import has_no_graph, makes_fresh
from torchport.check.source import Source, argument, constant, is_open
from torchport.text import mark

META = Rule(
    "C933",
    "variable-wrapper",
    INFO,
    mark("`Variable` has had no meaning since torch 0.4: tensors do all that it did"),
    mark("Leave it out: `{instead}`"),
    confidence=CERTAIN,
    since=(0, 4),
)
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)


def look(source: Source) -> Iterator[Hit]:
    """Safe where what it wraps has no graph that it cuts off."""
    for call in source.calls("torch.autograd.Variable", "torch.Variable"):
        given = argument(call, "data", 0)
        if given is None or is_open(call) or argument(call, "volatile") is not None or len(call.args) > 1:
            continue
        asked = constant(argument(call, "requires_grad"))
        if len(call.args) + len(call.keywords) > 1 and asked not in (True, False):
            continue
        text = source.code(given)
        tight = asked or isinstance(source.parent(call), (ast.Attribute, ast.BinOp))
        if (tight and not isinstance(given, _ATOMS)) or not _stands_alone(text):
            text = f"({text})"
        fresh = isinstance(given, ast.Call) and makes_fresh(source, given.func)
        if asked:
            text += ".requires_grad_()" if fresh else ".detach().requires_grad_()"
        safe = has_no_graph(source, given, set())
        whole = _changes_nothing(source, call)
        change = remove_statement(source, whole) if whole is not None else replace(source, call, text)
        yield Hit(call, {"instead": text}, (change,), safe=safe)


def _stands_alone(text: str) -> bool:
    """Whether an expression needs no parentheses around it to go over several lines."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _changes_nothing(source: Source, call: ast.Call) -> ast.Assign | None:
    """The statement ``x, y = Variable(x), Variable(y)`` around a call, of which nothing would be left."""
    statement = source.statement(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    sides = [each.elts if isinstance(each, ast.Tuple) else [each] for each in (*statement.targets, statement.value)]
    given = [
        each.args[0] for each in sides[1] if isinstance(each, ast.Call) and len(each.args) == 1 and not each.keywords
    ]
    wrapped = all(
        isinstance(each, ast.Call) and source.name(each.func) in ("torch.autograd.Variable", "torch.Variable")
        for each in sides[1]
    )
    same = [getattr(each, "id", "") for each in sides[0]] == [getattr(each, "id", None) for each in given]
    return statement if wrapped and same else None

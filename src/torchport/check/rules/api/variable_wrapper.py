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

from torchport.check.changes import replace
from torchport.check.rule import CERTAIN, INFO, Hit, Rule
from torchport.check.rules.kinds import FACTORIES, LEGACY
from torchport.check.rules.loading import batches
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
_SAME_GRAPH = frozenset(
    "cuda cpu to float double half long int bool byte type view reshape unsqueeze squeeze contiguous t transpose "
    "permute expand repeat clone".split()
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
        if not isinstance(given, _ATOMS) and (asked or isinstance(source.parent(call), (ast.Attribute, ast.BinOp))):
            text = f"({text})"
        fresh = isinstance(given, ast.Call) and source.name(given.func) in FACTORIES | LEGACY
        if asked:
            text += ".requires_grad_()" if fresh else ".detach().requires_grad_()"
        safe = _has_no_graph(source, given, set())
        yield Hit(call, {"instead": text}, (replace(source, call, text),), safe=safe)


def _has_no_graph(source: Source, node: ast.expr, seen: set[ast.expr]) -> bool:
    """Whether a tensor comes from a factory, from NumPy or out of a loader, with nothing learned on the way."""
    if node in seen:
        return True
    seen.add(node)
    match node:
        case ast.Attribute(attr="data"):
            return True
        case ast.Call():
            name = source.name(node.func)
            if name in FACTORIES or name in LEGACY or (name.startswith("torch.cuda.") and name.endswith("Tensor")):
                return argument(node, "requires_grad") is None
            kept = isinstance(node.func, ast.Attribute) and not name and node.func.attr in _SAME_GRAPH
            return kept and _has_no_graph(source, node.func.value, seen)  # type: ignore[attr-defined]
        case ast.Name():
            found = source.scope_at(node).find(node.id)
            return found is not None and all(
                _has_no_graph(source, way.value, seen)
                if way.value is not None
                else isinstance(way.node, ast.For) and batches(source, way.node) is not None
                for way in found[1]
            )
    return False

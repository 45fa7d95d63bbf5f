"""Checkpoints of one file: what a load gives, and what a save writes."""

from __future__ import annotations

import ast

from torchport.check.rules.kinds import is_module, is_optimizer
from torchport.check.source import Source, argument

_ASKED = (".parameters", ".named_parameters", ".state_dict", ".eval", ".train")
WRAPPERS = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel"})


def loads(source: Source) -> list[ast.Call]:
    """The calls of ``torch.load``."""
    return source.calls("torch.load")


def saves(source: Source) -> list[ast.Call]:
    """The calls of ``torch.save``."""
    return source.calls("torch.save")


def saved(call: ast.Call) -> ast.expr | None:
    """What a ``torch.save`` writes."""
    return argument(call, "obj", 0)


def goes_into(source: Source, call: ast.Call) -> ast.Call | None:
    """The ``x.load_state_dict(torch.load(…))`` around a load, None where it stands elsewhere."""
    above = source.parent(call)
    if isinstance(above, ast.Call) and call in above.args[:1] and _is_method(above, "load_state_dict"):
        return above
    return None


def uses(source: Source, call: ast.Call) -> list[ast.Name]:
    """The places that read the one name that a load is assigned to; none where it has another place."""
    statement = source.parent(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return []
    found = source.scope_at(target).find(target.id)
    return [
        each
        for each in source.nodes(ast.Name)
        if each.id == target.id
        and isinstance(each.ctx, ast.Load)
        and found is not None
        and (source.scope_at(each).find(target.id) or (None,))[0] is found[0]
    ]


def restores(source: Source, call: ast.Call) -> bool:
    """Whether a load ends in a ``load_state_dict``: at once, or by the name that it gets."""
    if goes_into(source, call) is not None:
        return True
    for name in uses(source, call):
        node: ast.AST | None = source.parent(name)
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            node = source.parent(node)
        if isinstance(node, ast.Call) and _is_method(node, "load_state_dict"):
            return True
    return False


def _is_method(call: ast.Call, *names: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in names


def state_of(source: Source, node: ast.expr | None) -> ast.expr | None:
    """The object whose ``state_dict()`` an expression is."""
    if isinstance(node, ast.Call) and _is_method(node, "state_dict") and not node.args:
        func: ast.Attribute = node.func  # type: ignore[assignment]
        return func.value
    return None


def wrapper(source: Source, node: ast.expr, makers: frozenset[str]) -> ast.Call | None:
    """The call of one of ``makers`` that an object comes from for certain: the last value that it was given."""
    if isinstance(node, ast.Name):
        found = source.scope_at(node).find(node.id)
        given = (
            [way.value for way in found[1] if _is_before(way.node, node) or found[0] is source.scope] if found else []
        )
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        owner = source.method_class(node)
        given = list(source.attributes(owner).get(node.attr, [])) if owner is not None else []
    else:
        return None
    last = given[-1] if given else None
    return last if isinstance(last, ast.Call) and source.name(last.func) in makers else None


def _is_before(node: ast.AST, other: ast.AST) -> bool:
    first, second = getattr(node, "lineno", 0), getattr(other, "lineno", 0)
    return bool(first < second)


def always(source: Source, call: ast.Call) -> bool:
    """Whether nothing but the function around it decides that a call runs."""
    return isinstance(source.parent(source.statement(call)), (ast.Module, ast.FunctionDef))


def is_kept(source: Source, call: ast.Call) -> bool:
    """Whether the ``x.state_dict()`` of a call may end in a file: not where another object takes it at once."""
    if not saves(source):
        return False
    above = source.parent(call)
    return not (isinstance(above, ast.Call) and _is_method(above, "load_state_dict"))


def is_model(source: Source, node: ast.expr) -> bool:
    """Whether an object is a module: by what made it, or by what the same function or module asks of it."""
    if is_module(source, node) or source.makers(node) & WRAPPERS:
        return True
    name = source.code(node)
    return any(
        source.code(call.func).rsplit(".", 1)[0] == name and not is_optimizer(source, node)
        for call in source.calls(*_ASKED)
        if source.function(call) is source.function(node)
    )


def in_memory(source: Source, node: ast.expr | None) -> bool:
    """Whether a file is none, but bytes of this process."""
    return node is not None and "io.BytesIO" in source.makers(node)

"""Rounds: which loop of a training a place belongs to, and how far the training is there, as an expression."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchport.check.rules.steps import looped_over
from torchport.check.source import Source, constant, parameters
from torchport.migrate.passing import callers

_MOST_STEPS = 4
Loop = ast.For | ast.While


@dataclass(frozen=True, slots=True)
class Rounds:
    """``outer`` is the outermost loop around a place, that of a caller where a function is called in one; ``step`` is
    the number of the round. ``passed`` is a name in it that the place does not know so far.
    """

    outer: Loop
    step: str
    passed: str = ""


def rounds(source: Source, place: ast.AST) -> Rounds | None:
    """None where no loop is around a place, or its number is not plain."""
    loops: list[Loop] = list(source.loops(place))
    around = _around(source, place)
    if around is None:
        return None
    outer, epoch = around
    inner = loops[0] if loops else None
    if inner is None:
        return Rounds(outer, epoch.name, epoch.passed) if epoch else None
    count = _count(source, inner)
    if inner is outer or not epoch:
        return Rounds(outer, count[0]) if count and inner is outer else None
    if len(loops) > 2:
        return None
    if epoch.loop is inner:
        return Rounds(outer, epoch.name)
    length = _length(source, inner)
    if not count or not length:
        return None
    first = f"({epoch.name} - {epoch.first})" if epoch.first else epoch.name
    return Rounds(outer, f"{first} * {length} + {count[0]}", epoch.passed)


@dataclass(frozen=True, slots=True)
class _Epoch:
    """The name that counts the epochs at a place, its first value and its loop."""

    name: str
    first: int
    loop: Loop
    passed: str = ""


def _around(source: Source, place: ast.AST) -> tuple[Loop, _Epoch | None] | None:
    """The outermost loop around a place, and the name of the epoch there with its first value and its loop."""
    function, here = source.function(place), list(source.loops(place))
    outer = here[-1] if here else None
    epoch = _named(source, outer) if outer is not None else None
    known = _Epoch(*epoch, outer) if epoch and outer is not None else None
    for _step in range(_MOST_STEPS):
        calls = callers(source, function)
        looped = [call for call in calls if source.loops(call)]
        if function is None or (len(calls) != 1 and not looped):
            break
        call = looped[0] if looped else calls[0]
        above = list(source.loops(call))
        if above:
            outer = above[-1]
            counted = _named(source, outer)
            known = _known(source, place, function, call, *counted, outer) if counted else None
        function = source.function(call)
    return (outer, known) if outer is not None else None


def _known(
    source: Source,
    place: ast.AST,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    call: ast.Call,
    name: str,
    first: int,
    loop: Loop,
) -> _Epoch | None:
    """By which name a place knows the epoch of the loop that calls its function; None where the name is taken."""
    given = _parameter(source, function, call, name)
    if given:
        return _Epoch(given, first, loop) if source.function(place) is function else None
    bound = source.scope_at(place).find(name)
    if bound is not None and (bound[0] is not source.scope or source.function(call) is not None):
        return None
    return _Epoch(name, first, loop, name)


def _parameter(source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, name: str) -> str:
    """The parameter by which a function gets a name of its caller."""
    given = parameters(function)
    if isinstance(source.parent(function), ast.ClassDef):
        given = given[1:]
    for parameter, value in zip(given, call.args, strict=False):
        if isinstance(value, ast.Name) and value.id == name:
            return parameter.arg
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Name) and keyword.value.id == name:
            return keyword.arg or ""
    return ""


def _named(source: Source, loop: Loop) -> tuple[str, int] | None:
    """The name that counts the rounds of a loop over a range, and its first value."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return None
    for over in looped_over(loop):
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
            first = constant(over.args[0]) if len(over.args) > 1 else 0
            step = constant(over.args[2]) if len(over.args) > 2 else 1
            if step == 1:
                return loop.target.id, first if isinstance(first, int) else 0
    return None


def _count(source: Source, loop: Loop) -> tuple[str, int] | None:
    """The name that counts the batches of a loop."""
    counted = _named(source, loop)
    if counted is not None:
        return counted
    if not isinstance(loop, ast.For):
        return None
    if isinstance(loop.target, ast.Name):
        over = loop.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
            step = over.args[2] if len(over.args) > 2 else None
            if isinstance(step, (ast.Name, ast.Attribute, ast.Constant)):
                return f"{loop.target.id} // {source.code(step)}", 0
    if isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name) and _enumerates(loop.iter):
        return loop.target.elts[0].id, 0
    return None


def _enumerates(node: ast.expr) -> bool:
    """Whether the rounds are numbered: ``enumerate`` or a ``tqdm`` around it; from 0."""
    while isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "enumerate":
            return not node.keywords and (len(node.args) == 1 or constant(node.args[1]) == 0)
        if not node.args:
            return False
        node = node.args[0]
    return False


def _length(source: Source, loop: Loop) -> str:
    """How many rounds a loop has, as an expression; empty where that is not plain."""
    if not isinstance(loop, ast.For):
        return ""
    over = looped_over(loop)
    plain = [each for each in over if isinstance(each, (ast.Name, ast.Attribute))]
    if len(plain) == 1 and _enumerates(loop.iter):
        return f"len({source.code(plain[0])})"
    counted = _named(source, loop)
    if counted is not None and counted[1] == 0 and isinstance(over[0], ast.Call) and len(over[0].args) == 1:
        given = over[0].args[0]
        return source.code(given) if isinstance(given, (ast.Name, ast.Attribute, ast.Constant, ast.Call)) else ""
    return ""

"""Makes a name of one function known in another that it calls: a parameter there, an argument at each call."""

from __future__ import annotations

import ast

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_STEPS = 4


def callers(source: Source, function: Function | None) -> list[ast.Call]:
    """The calls of a function of this file by its name, or by ``self`` where it is a method."""
    if function is None:
        return []
    owner = source.parent(function)
    return [
        call
        for call in source.nodes(ast.Call)
        if (isinstance(call.func, ast.Name) and call.func.id == function.name and owner is source.tree)
        or (
            isinstance(owner, ast.ClassDef)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == function.name
            and source.method_class(call) is owner
        )
    ]


def passed(source: Source, name: str, start: ast.AST, where: ast.AST) -> list[Change] | None:
    """What makes ``name``, which the function around ``where`` binds, known at ``start``; None where no plain way is.

    At the top of a module a name is known everywhere, and nothing is to do.
    """
    home = source.function(where)
    if home is None:
        return []
    found: list[Change] = []
    waiting: list[tuple[Function | None, int]] = [(source.function(start), 0)]
    done: set[ast.AST] = set()
    while waiting:
        function, steps = waiting.pop()
        if function is home or (function is not None and function in done):
            continue
        calls = callers(source, function)
        if function is None or not calls or steps > _MOST_STEPS:
            return None
        done.add(function)
        made = _parameter(source, function, name)
        if made is None or any(any(isinstance(each, ast.Starred) for each in call.args) for call in calls):
            return None
        position, change = made
        found += [change, *(_argument(source, call, name, position) for call in calls)]
        waiting += [(source.function(call), steps + 1) for call in calls]
    return found


def _parameter(source: Source, function: Function, name: str) -> tuple[int, Change] | None:
    """One more parameter, behind those without a default, and which argument of a call it is."""
    given = function.args
    if given.vararg or given.kwonlyargs or given.kwarg:
        return None
    plain = [*given.posonlyargs, *given.args]
    plain = plain[: len(plain) - len(given.defaults)]
    position = len(plain) - (1 if isinstance(source.parent(function), ast.ClassDef) else 0)
    if plain:
        end = source.span(plain[-1])[1]
        return position, (end, end, f", {name}")
    start = source.text.index("(", source.text.index(function.name, source.span(function)[0])) + 1
    return position, (start, start, f"{name}, " if given.args else name)


def _argument(source: Source, call: ast.Call, name: str, position: int) -> Change:
    """The argument for it: at its place, by name where those before it are given by name."""
    if position > len(call.args):
        return changes.add_argument(source, call, f"{name}={name}")
    if position == len(call.args) and not call.keywords:
        return changes.add_argument(source, call, name)
    if position:
        end = source.span(call.args[position - 1])[1]
        return end, end, f", {name}"
    start = source.span((*call.args, *call.keywords)[0])[0]
    return start, start, f"{name}, "

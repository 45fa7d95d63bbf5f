"""What a loop over epochs keeps from one round to the next: objects with a state, generators, and plain values."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchport.check.names import FUNCTIONS
from torchport.check.rules.training import conditions, last_name, looks_like_optimizer, receiver
from torchport.check.source import Source, argument, parameters
from torchport.migrate.models import is_model
from torchport.migrate.passing import callers

_STATEFUL = re.compile(r"torch\.(optim\.\w+|optim\.lr_scheduler\.\w+|amp\.GradScaler|cuda\.amp\.GradScaler)")
# What a function gets under such a name, and takes steps with, has a state.
_STEPS = re.compile(r"sched|scaler", re.IGNORECASE)
_GROWS = frozenset("append extend insert update setdefault add pop popleft appendleft".split())
_CLOCKS = re.compile(r"time\.(time|perf_counter|monotonic)\w*|datetime\b.*")


@dataclass(frozen=True, slots=True)
class Kept:
    """Expressions known at the loop: ``models`` and ``others`` have a ``state_dict``, ``generators`` draw numbers,
    ``values`` are names of what is plain.
    """

    models: tuple[str, ...]
    others: tuple[str, ...]
    generators: tuple[str, ...]
    values: tuple[str, ...]


def kept(source: Source, loop: ast.For) -> Kept:
    """What of the names and attributes of ``self`` known at a loop has to be there again where it goes on."""
    known = dict(_known(source, loop))
    models = [code for code, node in known.items() if is_model(source, node) or _given(source, node, is_model)]
    others = [code for code, node in known.items() if code not in models and _has_state(source, node)]
    generators = [code for code, node in known.items() if _draws(source, node) or _given(source, node, _draws)]
    parts = {*models, *others, *generators}
    values = [name for name in _carried(source, loop) if name not in parts]
    return Kept(*(tuple(each) for each in (models, others, generators, values)))


def _known(source: Source, loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """Names that are bound before a loop, parameters, and attributes of self: the code of each with a node of it."""
    function, around = source.function(loop), source.loops(loop)
    seen: set[str] = set()
    for node in sorted(source.nodes(ast.Name), key=lambda each: each.lineno):
        if not isinstance(node.ctx, ast.Store) or node.id in seen or node.lineno >= loop.lineno:
            continue
        loops = source.loops(node)
        if source.function(node) in (function, None) and loops == around[: len(loops)]:
            seen.add(node.id)
            yield node.id, node
    if not isinstance(function, FUNCTIONS):
        return
    for each in source.nodes(ast.Attribute):
        code = source.code(each)
        own = code == f"self.{each.attr}" and source.method_class(each) is source.method_class(loop)
        if own and code not in seen and isinstance(each.ctx, ast.Store):
            seen.add(code)
            yield code, each
    names = {each.arg for each in parameters(function)} - {"self", "cls"} - seen
    for node in source.nodes(ast.Name):
        if node.id in names and source.function(node) is function and isinstance(node.ctx, ast.Load):
            names.discard(node.id)
            yield node.id, node


def _has_state(source: Source, node: ast.expr) -> bool:
    """An optimizer, a scheduler, a scaler: made as one, given as one, or used as one."""
    if any(_STATEFUL.fullmatch(each) for each in source.makers(node)):
        return True
    if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
        return False
    if _given(source, node, lambda where, each: any(_STATEFUL.fullmatch(name) for name in where.makers(each))):
        return True
    stepped = any(source.code(receiver(call) or call) == source.code(node) for call in source.calls(".step"))
    return looks_like_optimizer(source, node) or (stepped and bool(_STEPS.search(last_name(node))))


def _draws(source: Source, node: ast.expr) -> bool:
    return "torch.Generator" in source.makers(node)


def _given(source: Source, node: ast.expr, holds: Callable[[Source, ast.expr], bool]) -> bool:
    """Whether something holds of what every call in the file gives for a parameter."""
    function = source.function(node)
    if not isinstance(node, ast.Name) or not isinstance(function, FUNCTIONS):
        return False
    names = [each.arg for each in parameters(function) if each.arg not in ("self", "cls")]
    if node.id not in names or not isinstance(node.ctx, ast.Load):
        return False
    given = [argument(call, node.id, names.index(node.id)) for call in callers(source, function)]
    return bool(given) and all(each is not None and holds(source, each) for each in given)


def _carried(source: Source, loop: ast.For) -> list[str]:
    """The names that a round of a loop reads as the round before left them, in the order of their first values."""
    function = source.function(loop)
    before: dict[str, ast.Name] = {}
    inside: dict[str, list[ast.Name]] = {}
    after: set[str] = set()
    shared = {name for each in source.nodes(ast.Global) for name in each.names} if function is None else set()
    for node in sorted(source.nodes(ast.Name), key=lambda each: (each.lineno, each.col_offset)):
        here = source.function(node) is function
        if here and loop in source.ancestors(node):
            inside.setdefault(node.id, []).append(node)
        elif here and node.lineno < loop.lineno and isinstance(node.ctx, ast.Store):
            before.setdefault(node.id, node)
        elif here and node.lineno > loop.lineno and isinstance(node.ctx, ast.Load):
            after.add(node.id)
    return [
        name
        for name, node in before.items()
        if not any(_CLOCKS.fullmatch(each) for each in source.makers(node))
        and (
            (name in shared and any(isinstance(each.ctx, ast.Store) for each in _elsewhere(source, name)))
            or _changes(source, loop, inside.get(name, []), name in after)
        )
    ]


def _elsewhere(source: Source, name: str) -> Iterator[ast.Name]:
    return (each for each in source.nodes(ast.Name) if each.id == name and source.function(each) is not None)


def _changes(source: Source, loop: ast.For, uses: list[ast.Name], read_after: bool) -> bool:
    """Whether a round changes a value, and a later one, or what is behind the loop, reads it."""
    written = [each for each in uses if isinstance(each.ctx, ast.Store)]
    if not written and not any(_grows(source, each) for each in uses):
        return False
    added = [each for each in written if isinstance(source.parent(each), ast.AugAssign)]
    fresh = [_when(source, each) for each in written if each not in added and _in_every_round(source, loop, each)]
    reads = [_when(source, each) for each in uses if isinstance(each.ctx, ast.Load) or each in added]
    return any(each < min(fresh, default=each) or not fresh for each in reads) or (read_after and not fresh)


def _in_every_round(source: Source, loop: ast.For, node: ast.Name) -> bool:
    """Whether each round of a loop comes by a node."""
    outside = conditions(source, loop)
    return source.loops(node)[:1] == [loop] and conditions(source, node) <= outside


def _when(source: Source, node: ast.Name) -> tuple[int, int]:
    """Where in the text a use takes effect: a statement binds in its end what it binds."""
    above = source.parent(node)
    if isinstance(node.ctx, ast.Store) and not isinstance(above, (ast.For, ast.AugAssign)):
        statement = source.statement(node)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return statement.end_lineno or 0, statement.end_col_offset or 0
    return node.lineno, node.col_offset


def _grows(source: Source, node: ast.Name) -> bool:
    """Whether a list or a dictionary that was made empty gets something more."""
    made = source.values(node)
    if not made or not all(isinstance(each, (ast.List, ast.Dict)) for each in made):
        return False
    match source.parent(node):
        case ast.Attribute(attr=method):
            return method in _GROWS
        case ast.Subscript(ctx=ast.Store(), value=value):
            return value is node
        case _:
            return False

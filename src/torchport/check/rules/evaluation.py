"""Where a file tries out a model: loops that call it and train nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchport.check.rules.kinds import is_module
from torchport.check.rules.ranks import home
from torchport.check.rules.steps import is_batch_loop, looped_over
from torchport.check.rules.training import comes_before, last_name
from torchport.check.source import Source, constant

_HELD_OUT = re.compile(
    r"(^|_)(val|valid|validation|test|testing|eval|evaluation|dev)(_|\d*$|[a-z]*(loader|iter|set|data))"
)
_MODEL = re.compile(r"(^|_)(model|net|network|classifier)(_|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A loop that tries out a model. ``mode`` is the last switch before it in its function: ``.eval()``, ``.train()``;
    None where there is none. ``held_out`` says that it goes through data kept for that.
    """

    loop: ast.For | ast.While
    model: ast.expr
    mode: str | None
    held_out: bool


def evaluations(source: Source) -> Iterator[Evaluation]:
    """The loops that call a model that is known to be one, with nothing of a training in or right around them."""
    trains: set[ast.AST] = set()
    direct: set[ast.AST] = set()
    for call in source.calls(".backward", ".manual_backward", ".zero_grad"):
        loops = source.loops(call)
        trains.update(loops)
        direct.update(loops[:1])
        direct.add(home(source, call)) if not loops else None
    seen: set[ast.AST] = set()
    for call in source.nodes(ast.Call):
        loop = _loop(source, call)
        if loop is None or loop in seen or loop in trains or not _plain(call.func):
            continue
        if any(each in direct for each in (*source.loops(loop), home(source, loop))):
            continue
        mode = _mode(source, call.func, loop)
        held_out = isinstance(loop, ast.For) and any(_is_held_out(each) for each in looped_over(loop))
        if not _is_model(source, call.func) and mode != "eval" and not (held_out and _named_model(source, call.func)):
            continue
        seen.add(loop)
        yield Evaluation(loop, call.func, mode, held_out)


def _loop(source: Source, call: ast.Call) -> ast.For | ast.While | None:
    """The innermost loop around a call over batches or held-out data, else the innermost one."""
    loops = source.loops(call)
    for loop in loops:
        if is_batch_loop(source, loop) or (
            isinstance(loop, ast.For) and any(_is_held_out(each) for each in looped_over(loop))
        ):
            return loop
    return loops[0] if loops else None


def _is_held_out(node: ast.expr) -> bool:
    name = last_name(node.value) if isinstance(node, ast.Subscript) else last_name(node)
    return bool(_HELD_OUT.search(name.lower())) and "train" not in name.lower()


def _plain(node: ast.expr) -> bool:
    """A name, or an attribute of self."""
    return isinstance(node, ast.Name) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    )


def _is_model(source: Source, node: ast.expr) -> bool:
    made = source.makers(node)
    return is_module(source, node) and not any(name.endswith("Loss") for name in made)


def _named_model(source: Source, node: ast.expr) -> bool:
    """A parameter or attribute of the name of a model, whose maker is not known."""
    return not source.values(node) and bool(_MODEL.search(last_name(node)))


def _mode(source: Source, model: ast.expr, loop: ast.AST) -> str | None:
    """What the last ``.eval()`` or ``.train()`` of a model before a loop made of it."""
    name, found = source.code(model), None
    for call in source.calls(".eval", ".train"):
        if (
            isinstance(call.func, ast.Attribute)
            and comes_before(call, loop)
            and home(source, call) is home(source, loop)
            and source.code(call.func.value) == name
        ):
            off = call.func.attr == "train" and bool(call.args) and constant(call.args[0]) is False
            found = "eval" if off else call.func.attr
    return found

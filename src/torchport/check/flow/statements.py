"""What each kind of statement does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchport.check.flow.frame import Environment, Frame
from torchport.check.flow.tests import truth
from torchport.check.flow.values import (
    UNKNOWN,
    Class,
    Const,
    DeviceValue,
    Function,
    Sequence,
    join,
)

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter


def _expr(run: Interpreter, node: ast.Expr, frame: Frame) -> None:
    run.value(node.value, frame)


def _return(run: Interpreter, node: ast.Return, frame: Frame) -> bool:
    frame.returned.append(run.value(node.value, frame) if node.value else Const(None))
    return True


def _assign(run: Interpreter, node: ast.Assign, frame: Frame) -> None:
    value = run.value(node.value, frame)
    for target in node.targets:
        run.assign(target, value, frame, node.value)


def _ann_assign(run: Interpreter, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        run.assign(node.target, run.value(node.value, frame), frame, node.value)


def _aug_assign(run: Interpreter, node: ast.AugAssign, frame: Frame) -> None:
    left, right = run.value(node.target, frame), run.value(node.value, frame)
    result = run.combine(node, [left, right], frame, in_place=True)
    if isinstance(left, Sequence):
        result = join(left, right) if isinstance(right, Sequence) else UNKNOWN
    run.assign(node.target, result, frame, node.value)


def _function_def(run: Interpreter, node: ast.FunctionDef, frame: Frame) -> None:
    frame.names[node.name] = Function(frame.source, node, around=frame)


def _class_def(run: Interpreter, node: ast.ClassDef, frame: Frame) -> None:
    frame.names[node.name] = Class(frame.source, node)


def _import(run: Interpreter, node: ast.Import, frame: Frame) -> None:
    for alias in node.names:
        frame.names.pop(alias.asname or alias.name.split(".")[0], None)


def _import_from(run: Interpreter, node: ast.ImportFrom, frame: Frame) -> None:
    base = _sibling(run, node, frame)
    for alias in node.names:
        name = alias.asname or alias.name
        if base is not None and alias.name == "*":
            frame.names.update(base.names)
        elif base is not None and alias.name in base.names:
            frame.names[name] = base.names[alias.name]
        else:
            frame.names.pop(name, None)


def _sibling(run: Interpreter, node: ast.ImportFrom, frame: Frame) -> Frame | None:
    name = node.module or ""
    if node.level:
        parents = frame.source.module.split(".")[: -node.level]
        name = ".".join([*parents, *([name] if name else [])])
    source = run.sibling(name) if name else None
    return run.module(source) if source is not None else None


def _if(run: Interpreter, node: ast.If, frame: Frame) -> bool:
    decided = truth(node.test, frame, run)
    if decided is None:
        run.value(node.test, frame)
        before = dict(frame.names)
        ended = run.block(node.body, frame)
        first, frame.names = frame.names, before
        other_ended = run.block(node.orelse, frame)
        if ended:
            return other_ended
        if other_ended:
            frame.names = first
            return False
        frame.names = _joined(first, frame.names)
        return False
    return run.block(node.body if decided else node.orelse, frame)


def _for(run: Interpreter, node: ast.For, frame: Frame) -> None:
    element = run.element(run.value(node.iter, frame), node.iter, frame)
    for _round in range(2):
        run.assign(node.target, element, frame, node.iter)
        run.block(node.body, frame)
    run.block(node.orelse, frame)


def _while(run: Interpreter, node: ast.While, frame: Frame) -> None:
    run.value(node.test, frame)
    for _round in range(2):
        run.block(node.body, frame)


def _with(run: Interpreter, node: ast.With, frame: Frame) -> bool:
    before = run.default
    for item in node.items:
        value = run.value(item.context_expr, frame)
        if isinstance(value, DeviceValue):  # with torch.device("cuda"):
            run.default = value.device
        if item.optional_vars is not None:
            run.assign(item.optional_vars, UNKNOWN, frame, item.context_expr)
    ended = run.block(node.body, frame)
    run.default = before
    return ended


def _try(run: Interpreter, node: ast.Try, frame: Frame) -> bool:
    ended = run.block(node.body, frame)
    if not ended:
        run.block(node.orelse, frame)
    run.block(node.finalbody, frame)
    return False


def _delete(run: Interpreter, node: ast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.names.pop(target.id, None)


def _joined(left: Environment, right: Environment) -> Environment:
    return {
        name: join(left[name], right[name]) if name in left and name in right else (left.get(name) or right[name])
        for name in {**left, **right}
    }


Do = Callable[["Interpreter", Any, "Frame"], "bool | None"]

STATEMENTS: dict[type[ast.stmt], Do] = {
    ast.Expr: _expr,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.FunctionDef: _function_def,
    ast.AsyncFunctionDef: _function_def,
    ast.ClassDef: _class_def,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Delete: _delete,
}

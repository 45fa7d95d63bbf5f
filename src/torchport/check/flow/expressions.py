"""What each kind of expression is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.frame import Frame
from torchport.check.flow.tests import truth
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Const,
    DeviceValue,
    Function,
    Loader,
    Mapping,
    Module,
    Object,
    Sequence,
    Tensor,
    Tree,
    Value,
    join,
)
from torchport.check.source import Source

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter


def _constant(run: Interpreter, node: ast.Constant, frame: Frame) -> Value:
    return Const(node.value)


def _name(run: Interpreter, node: ast.Name, frame: Frame) -> Value:
    value = frame.look_up(node.id)
    return UNKNOWN if value is None else value


def _attribute(run: Interpreter, node: ast.Attribute, frame: Frame) -> Value:
    owner = run.value(node.value, frame)
    if isinstance(owner, (Module, Object)):
        if node.attr in owner.attributes:
            return owner.attributes[node.attr]
        method = run.method(owner, node.attr)
        if method is not None:
            if any(
                frame.source.name(each) or getattr(each, "id", "") == "property" for each in _decorators(method)
            ) and (_is_property(method)):
                return run.call_function(method, [], {}, frame)
            return method
        return (
            Tensor(owner.device, follows=True)
            if isinstance(owner, Module) and node.attr in ("weight", "bias")
            else UNKNOWN
        )
    if isinstance(owner, (Tensor, Tree)):
        if node.attr == "device":
            return DeviceValue(owner.device)
        if node.attr == "is_cuda":
            return Const(owner.device == GPU) if owner.device else UNKNOWN
        if node.attr in facts.NUMBERS:
            return UNKNOWN
        return (
            owner
            if isinstance(owner, Tree) or node.attr in ("data", "T", "mT", "H", "grad", "real", "imag")
            else UNKNOWN
        )
    if isinstance(owner, Sequence | Mapping | Const | Loader):
        return UNKNOWN
    source = _module_of(run, node.value, frame)
    if source is not None:
        return run.module(source).names.get(node.attr, UNKNOWN)
    return UNKNOWN


def _module_of(run: Interpreter, node: ast.expr, frame: Frame) -> Source | None:
    name = frame.source.name(node) if isinstance(node, ast.Name) else ""
    return run.sibling(name) if name and not name.startswith("torch") else None


def _tuple(run: Interpreter, node: ast.Tuple | ast.List, frame: Frame) -> Value:
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return Sequence(None, UNKNOWN)
    return Sequence(tuple(run.value(each, frame) for each in node.elts))


def _dict(run: Interpreter, node: ast.Dict, frame: Frame) -> Value:
    items: dict[object, Value] = {}
    for key, each in zip(node.keys, node.values, strict=True):
        value = run.value(each, frame)
        if isinstance(key, ast.Constant):
            items[key.value] = value
        elif isinstance(value, Module):
            items[object()] = value
    return Mapping(items)


def _list_comp(run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
    inner = _comprehension(run, node, frame)
    element = run.value(node.elt, inner)
    if len(node.generators) == 1 and isinstance(element, (Tensor, Module)):
        return Sequence(None, element)
    return Sequence(None, element)


def _dict_comp(run: Interpreter, node: ast.DictComp, frame: Frame) -> Value:
    inner = _comprehension(run, node, frame)
    value = run.value(node.value, inner)
    if isinstance(value, (Tensor, Tree)):
        return Tree(value.device, value.origin)
    return Mapping({object(): value}) if isinstance(value, Module) else UNKNOWN


def _comprehension(
    run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame
) -> Frame:
    inner = Frame(frame.source, {}, frame, frame.depth)
    for each in node.generators:
        run.assign(each.target, run.element(run.value(each.iter, inner), each.iter, inner), inner, each.iter)
    return inner


def _if_exp(run: Interpreter, node: ast.IfExp, frame: Frame) -> Value:
    decided = truth(node.test, frame, run)
    if decided is not None:
        return run.value(node.body if decided else node.orelse, frame)
    run.value(node.test, frame)
    return join(run.value(node.body, frame), run.value(node.orelse, frame))


def _lambda(run: Interpreter, node: ast.Lambda, frame: Frame) -> Value:
    return Function(frame.source, node, around=frame)


def _named_expr(run: Interpreter, node: ast.NamedExpr, frame: Frame) -> Value:
    value = run.value(node.value, frame)
    run.assign(node.target, value, frame, node.value)
    return value


def _await(run: Interpreter, node: ast.Await, frame: Frame) -> Value:
    return run.value(node.value, frame)


def _starred(run: Interpreter, node: ast.Starred, frame: Frame) -> Value:
    run.value(node.value, frame)
    return UNKNOWN


def _unary_op(run: Interpreter, node: ast.UnaryOp, frame: Frame) -> Value:
    value = run.value(node.operand, frame)
    return value if isinstance(value, Tensor) else UNKNOWN


def _bool_op(run: Interpreter, node: ast.BoolOp, frame: Frame) -> Value:
    found = [run.value(each, frame) for each in node.values]
    return found[0] if len(set(map(id, found))) == 1 else UNKNOWN


def _bin_op(run: Interpreter, node: ast.BinOp, frame: Frame) -> Value:
    left, right = run.value(node.left, frame), run.value(node.right, frame)
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(node.op, ast.Add):
        if left.items is not None and right.items is not None:
            return Sequence(left.items + right.items)
        return Sequence(None, join(left.each(), right.each()))
    if isinstance(left, Sequence) and isinstance(node.op, ast.Mult):
        return Sequence(None, left.each())
    return run.combine(node, [left, right], frame, role="mask" if _is_bitwise(node.op) else "")


def _compare(run: Interpreter, node: ast.Compare, frame: Frame) -> Value:
    found = [run.value(each, frame) for each in (node.left, *node.comparators)]
    if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
        return UNKNOWN
    return run.combine(node, found, frame)


def _subscript(run: Interpreter, node: ast.Subscript, frame: Frame) -> Value:
    owner = run.value(node.value, frame)
    indices = _indices(run, node.slice, frame)
    if isinstance(owner, Mapping):
        key = indices[0].value if len(indices) == 1 and isinstance(indices[0], Const) else None
        return owner.items.get(key, UNKNOWN)
    if isinstance(owner, Sequence):
        if len(indices) == 1 and isinstance(indices[0], Const) and isinstance(indices[0].value, int):
            if owner.items is not None and -len(owner.items) <= indices[0].value < len(owner.items):
                return owner.items[indices[0].value]
            return owner.element if owner.items is None else UNKNOWN
        return owner if isinstance(node.slice, ast.Slice) and owner.items is None else UNKNOWN
    if isinstance(owner, Module):
        return run.element(owner, node, frame) if not isinstance(node.slice, ast.Slice) else owner
    if isinstance(owner, Tensor):
        for index in indices:
            if isinstance(index, Tensor) and owner.device == CPU and index.device == GPU and not owner.numbers:
                run._event("index-device-mismatch", node, owner, frame, frame.source.code(node.slice))
                return owner.at(GPU)
        several = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keeps = all(isinstance(each, ast.Slice) or _is_none(each) for each in several)
        if any(isinstance(index, Tensor) for index in indices):
            return replace(owner, follows=False, dims=None)
        if keeps:
            added = sum(isinstance(each, ast.Constant) and each.value is None for each in several)
            return replace(owner, follows=False, dims=None if owner.dims is None else owner.dims + added)
        if any(isinstance(each, ast.Constant) and each.value is Ellipsis for each in several):
            return owner.with_dims(None)
        taken = sum(not isinstance(each, ast.Slice) for each in several)
        plain = all(isinstance(each, (ast.Slice, ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp)) for each in several)
        return owner.with_dims(owner.dims - taken if owner.dims is not None and plain else None)
    return run.indexed(owner, node) if isinstance(owner, Tree) else UNKNOWN


def _indices(run: Interpreter, node: ast.expr, frame: Frame) -> list[Value]:
    if isinstance(node, ast.Tuple):
        return [run.value(each, frame) for each in node.elts]
    if isinstance(node, ast.Slice):
        for each in (node.lower, node.upper, node.step):
            if each is not None:
                run.value(each, frame)
        return []
    return [run.value(node, frame)]


def _call(run: Interpreter, node: ast.Call, frame: Frame) -> Value:
    from torchport.check.flow.calls import call

    return call(run, node, frame)


def _decorators(function: Function) -> list[ast.expr]:
    return [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list


def _is_property(function: Function) -> bool:
    return any(getattr(each, "id", "") == "property" for each in _decorators(function))


def _is_bitwise(op: ast.operator) -> bool:
    return isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis)


Read = Callable[["Interpreter", Any, "Frame"], Value]

EXPRESSIONS: dict[type[ast.expr], Read] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Dict: _dict,
    ast.ListComp: _list_comp,
    ast.SetComp: _list_comp,
    ast.GeneratorExp: _list_comp,
    ast.DictComp: _dict_comp,
    ast.IfExp: _if_exp,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named_expr,
    ast.Await: _await,
    ast.Starred: _starred,
    ast.UnaryOp: _unary_op,
    ast.BoolOp: _bool_op,
    ast.BinOp: _bin_op,
    ast.Compare: _compare,
    ast.Subscript: _subscript,
    ast.Call: _call,
}

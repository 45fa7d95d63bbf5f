"""What a call gives, and which tensors meet in it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from torchport.check.flow.frame import Frame
from torchport.check.flow.functions import torch_call
from torchport.check.flow.layers import forward
from torchport.check.flow.methods import method_call, numpy_call
from torchport.check.flow.values import (
    UNKNOWN,
    Class,
    Function,
    Loader,
    Module,
    Object,
    Sequence,
    Tree,
    Value,
)

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter

_PASS_THROUGH = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "rich.progress.track"})


def call(run: Interpreter, node: ast.Call, frame: Frame) -> Value:
    """The value of a call; what it does to the devices of its object has happened then."""
    given: list[Value] = []
    for each in node.args:
        value = run.value(each, frame)
        if isinstance(each, ast.Starred):
            inner = run.value(each.value, frame)
            value = inner if isinstance(inner, (Tree, Sequence)) else UNKNOWN
        given.append(value)
    named = {each.arg: run.value(each.value, frame) for each in node.keywords if each.arg}
    name = frame.source.name(node.func)
    if _is_super_init(node):
        own = frame.look_up("self")
        if isinstance(own, Module) and own.owner is not None:
            own.items += [each for value in given for each in ([value] if isinstance(value, Module) else [])]
        return UNKNOWN
    if isinstance(node.func, ast.Attribute) and not name.startswith(("torch.", "numpy.")):
        owner = run.value(node.func.value, frame)
        found = method_call(run, owner, node, node.func, given, named, frame)
        if found is not None:
            return found
    if name.startswith("torch."):
        return torch_call(run, name, node, given, named, frame)
    if name.startswith("numpy.") or name in ("matplotlib.pyplot.plot", "matplotlib.pyplot.imshow"):
        return numpy_call(run, node, given, frame)
    target = run.value(node.func, frame)
    if isinstance(target, Function):
        return run.call_function(target, given, named, frame)
    if isinstance(target, Class):
        return run.instance(target, given, named, frame, node)
    if isinstance(target, (Module, Object)):
        return forward(run, target, node, given, named, frame)
    return _builtin(run, name, node, given, named, frame)


def _is_super_init(node: ast.Call) -> bool:
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            return True
    return False


def _builtin(
    run: Interpreter, name: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    word = name or (node.func.id if isinstance(node.func, ast.Name) else "")
    first = given[0] if given else UNKNOWN
    if word in _PASS_THROUGH or word in ("tqdm", "iter", "reversed", "list", "tuple", "sorted"):
        return first if isinstance(first, (Loader, Sequence, Tree)) else UNKNOWN
    if word == "enumerate":
        return Sequence(None, Sequence((UNKNOWN, run.element(first, node.args[0], frame)))) if node.args else UNKNOWN
    if word == "zip":
        return Sequence(
            None, Sequence(tuple(run.element(value, at, frame) for value, at in zip(given, node.args, strict=True)))
        )
    if word == "next":
        return run.element(first, node.args[0], frame) if node.args else UNKNOWN
    if word in ("copy.deepcopy", "copy.copy"):
        return _copied(first)
    if word in ("sum", "max", "min") and isinstance(first, Sequence):
        return first.each()
    if word in ("getattr", "vars", "locals", "globals", "setattr"):
        return UNKNOWN
    if word.rsplit(".", 1)[-1] == "prepare" and "accelerat" in frame.source.text:
        return UNKNOWN
    return UNKNOWN


def _copied(value: Value) -> Value:
    if isinstance(value, Module):
        copied = replace(value, attributes=dict(value.attributes), items=[_copied(item) for item in value.items])
        copied.attributes = {name: _copied(each) for name, each in value.attributes.items()}
        return copied
    return value

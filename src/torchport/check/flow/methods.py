"""What the methods of tensors, batches and modules give and do."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.devices import read_device, target_device
from torchport.check.flow.events import Event
from torchport.check.flow.frame import Frame
from torchport.check.flow.functions import drawn
from torchport.check.flow.layers import forward
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Array,
    Class,
    Const,
    Device,
    DeviceValue,
    Function,
    Generator,
    Loader,
    Mapping,
    Module,
    Object,
    Optimizer,
    Origin,
    Sequence,
    Tensor,
    Tree,
    Value,
    join,
)
from torchport.check.source import argument

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter


_FIXED: dict[str, Device] = {"cuda": GPU, "xpu": GPU, "cpu": CPU}
_MOVES = frozenset({"to", "type", "type_as", *_FIXED})


def method_call(
    run: Interpreter,
    owner: Value,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value | None:
    if isinstance(owner, Tensor):
        return _tensor_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Tree):
        return _tree_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Module):
        return _module_method(run, owner, node, func, given, named, frame)
    if isinstance(owner, Object):
        method = run.method(owner, func.attr)
        if method is not None:
            return run.call_function(method, given, named, frame)
        held = owner.attributes.get(func.attr)
        return forward(run, held, node, given, named, frame) if isinstance(held, (Module, Object)) else UNKNOWN
    if isinstance(owner, Sequence):
        if func.attr in ("append", "insert", "extend") and given and isinstance(func.value, ast.Name):
            new = given[-1].each() if func.attr == "extend" and isinstance(given[-1], Sequence) else given[-1]
            empty = owner.items == () or (owner.items is None and owner.element == UNKNOWN)
            grown = Sequence(None, new if empty else join(owner.each(), new))
            run.assign(func.value, grown, frame, node)
        return UNKNOWN
    if isinstance(owner, Mapping):
        if func.attr == "values":
            return Sequence(tuple(owner.items.values()))
        if func.attr == "items":
            return Sequence(tuple(Sequence((UNKNOWN, each)) for each in owner.items.values()))
        if func.attr == "get" and given and isinstance(given[0], Const):
            return owner.items.get(given[0].value, UNKNOWN)
        return UNKNOWN
    if isinstance(owner, Class):
        function = run.method(Object(owner), "forward" if func.attr == "apply" else func.attr)
        if function is None:
            return UNKNOWN
        first = [UNKNOWN] if func.attr == "apply" else []
        return run.call_function(replace(function, bound=None), [*first, *given], named, frame)
    if isinstance(owner, Generator):
        return owner if func.attr == "manual_seed" else UNKNOWN
    if isinstance(owner, (Loader, Optimizer, Array, Const, DeviceValue)):
        return UNKNOWN
    return None


def _tensor_method(
    run: Interpreter,
    owner: Tensor,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    if method in _MOVES:
        device = _goal(run, method, node, given, named, frame)
        return replace(owner, follows=False) if device == "keep" else _moved(owner, device)
    if method in ("numpy", "__array__"):
        if owner.device == GPU:
            _numpy_event(run, node, func.value, owner, frame)
        return Array()
    if method.startswith("new_"):
        device = read_device(named["device"], argument(node, "device"), frame) if "device" in named else owner.device
        return Tensor(device, Origin(frame.source, node, "factory") if device == CPU else None)
    if method in facts.NUMBERS:
        return UNKNOWN
    if method in ("view", "reshape") and node.args and not any(isinstance(each, ast.Starred) for each in node.args):
        shape = node.args[0].elts if isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
        known = len(node.args) > 1 or isinstance(node.args[0], (ast.Tuple, ast.List, ast.Constant, ast.UnaryOp))
        return replace(owner, follows=False, dims=len(shape) if known else None)
    if method in facts.TAKES_BOTH:
        return replace(owner, follows=False, dims=owner.dims if method in ("to", "type_as", "requires_grad_") else None)
    generator = named.pop("generator", None)
    if generator is not None:
        drawn(run, node, {"generator": generator}, owner.device, frame)
    role = "mask" if method.startswith("masked_") else ""
    in_place = method.endswith("_") and not method.endswith("__")
    result = run.combine(
        node, [owner, *given, *named.values()], frame, role, in_place, excuses=method.rstrip("_") in facts.ELEMENTWISE
    )
    if not isinstance(result, Tensor):
        return UNKNOWN
    if method in facts.REDUCTIONS and not given and not {"dim", "axis"} & named.keys():
        return replace(result, numbers=True)
    if method in ("split", "chunk", "tensor_split"):
        return Sequence(None, replace(result, dims=owner.dims, numbers=owner.numbers))
    if method == "unbind":
        return Sequence(None, run.indexed(owner, node))
    if method in ("max", "min", "sort", "topk", "median", "mode"):
        return Sequence(None, replace(result, numbers=None)) if given or named else result
    return replace(result, origin=result.origin or owner.origin) if result.device == CPU else result


def _goal(
    run: Interpreter, method: str, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Device:
    """Where a tensor's move goes: a device, "keep", or None where that is not known."""
    if method in _FIXED:
        return _FIXED[method]
    if method == "to":
        return target_device(run, node, given, named, frame)
    if method == "type_as":
        return given[0].device if given and isinstance(given[0], (Tensor, Tree)) else None
    text = frame.source.code(node.args[0]) if node.args else ""  # type("torch.cuda.FloatTensor")
    return GPU if "cuda" in text else "keep" if text.startswith("torch.") else None


def _moved(owner: Tensor, device: Device) -> Tensor:
    return replace(owner, device=device, follows=False, origin=owner.origin if device == CPU else None, assumed=False)


def _numpy_event(run: Interpreter, node: ast.AST, read: ast.expr, owner: Tensor | Tree, frame: Frame) -> None:
    origin = Origin(frame.source, node, "made")
    run.log.add(Event("numpy-on-cuda", frame.source, node, origin, "", frame.source.code(read)))


def _tree_method(
    run: Interpreter,
    owner: Tree,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    if method in ("to", "cuda", "cpu"):
        device = _FIXED[method] if method in _FIXED else target_device(run, node, given, named, frame)
        if device == "keep":
            return owner
        moved = Tree(device, owner.origin if device == CPU else None)
        if isinstance(frame.source.parent(node), ast.Expr) and isinstance(func.value, ast.Name):
            # A batch of transformers or of a graph library moves in place; a tensor would not.
            run.assign(func.value, Tree(None), frame, node)
        return moved
    if method == "numpy":
        if owner.device == GPU:
            _numpy_event(run, node, func.value, owner, frame)
        return Array()
    if method in ("items", "values"):
        return Sequence(None, Sequence((UNKNOWN, owner)) if method == "items" else owner)
    if method in ("keys", *facts.NUMBERS):
        return UNKNOWN
    if method in facts.TAKES_BOTH or method in ("get", "pop"):
        return owner
    return run.combine(node, [owner, *given, *named.values()], frame)


def _module_method(
    run: Interpreter,
    owner: Module,
    node: ast.Call,
    func: ast.Attribute,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    method = func.attr
    own = run.method(owner, method) if owner.owner is not None else None
    if own is not None and method not in ("to", "cuda", "cpu", "to_empty"):
        return run.call_function(own, given, named, frame)
    if method in ("to", "cuda", "cpu", "xpu"):
        device = _FIXED[method] if method in _FIXED else target_device(run, node, given, named, frame)
        if device != "keep":
            owner.move(device)
        return owner
    if method == "register_buffer" and given and isinstance(given[0], Const):
        value = given[1] if len(given) > 1 else named.get("tensor", UNKNOWN)
        if isinstance(value, Tensor):
            owner.attributes[given[0].value] = replace(value, device=owner.device, follows=True, origin=None)
        return UNKNOWN
    if method == "add_module" and len(given) > 1 and isinstance(given[0], Const):
        owner.attributes[str(given[0].value)] = given[1]
        return UNKNOWN
    if method == "append" and given:
        owner.items.append(given[0])
        return owner
    if method in ("train", "eval", "requires_grad_", "float", "half", "double", "bfloat16", "apply", "share_memory"):
        return owner
    if method in ("parameters", "named_parameters", "buffers", "state_dict"):
        return Sequence(None, Tensor(owner.device, follows=True)) if method == "parameters" else UNKNOWN
    if method == "forward":
        return forward(run, owner, node, given, named, frame)
    held = owner.attributes.get(method)
    if isinstance(held, (Module, Object)):
        return forward(run, held, node, given, named, frame)
    if isinstance(held, Function):
        return run.call_function(held, given, named, frame)
    return UNKNOWN


def numpy_call(run: Interpreter, node: ast.Call, given: list[Value], frame: Frame) -> Value:
    for value, at in zip(given, node.args, strict=False):
        if isinstance(value, Tensor) and value.device == GPU:
            _numpy_event(run, at, at, value, frame)
    return Array()

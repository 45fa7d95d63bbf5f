"""What calling a module gives, and which tensors meet in it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.events import Event
from torchport.check.flow.frame import Frame
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Device,
    Module,
    Object,
    Origin,
    Sequence,
    Tensor,
    Tree,
    Value,
)

if TYPE_CHECKING:
    from torchport.check.flow.interpret import Interpreter


_MASK_WORD = re.compile(r"mask", re.IGNORECASE)


def forward(
    run: Interpreter, owner: Value, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame
) -> Value:
    """``module(…)``."""
    if isinstance(owner, Object):
        method = run.method(owner, "__call__")
        return run.call_function(method, given, named, frame) if method is not None else UNKNOWN
    if not isinstance(owner, Module):
        return UNKNOWN
    if owner.name == "torch.nn.DataParallel" and owner.items:
        if owner.scatters:
            given = [_given_to(value, owner.device) for value in given]
            named = {word: _given_to(value, owner.device) for word, value in named.items()}
        return forward(run, owner.items[0], node, given, named, frame)
    if owner.owner is not None:
        _meets_input(run, owner, node, [*given, *named.values()], frame)
        method = run.method(owner, "forward") or run.method(owner, "__call__")
        if method is not None:
            return run.call_function(method, given, named, frame)
        if not owner.items:
            return UNKNOWN
    last = owner.name.rsplit(".", 1)[-1] if owner.owner is None else "Sequential"
    if facts.is_loss(owner.name):
        result = run.combine(node, [*given, *named.values()], frame, "label")
        run.combine(node, [*given[:1], *(tensor for _, tensor in owner.plain)], frame, "weight")
        return replace(result, numbers=True) if isinstance(result, Tensor) else UNKNOWN
    if last == "Sequential":
        value: Value = given[0] if given else UNKNOWN
        for layer in owner.items:
            value = forward(run, layer, node, [value], {}, frame)
        return value
    if last in facts.NO_PARAMETERS:
        return run.combine(node, [*given[:1]], frame)
    return _parametrised(run, owner, last, node, given, named, frame)


def _meets_input(run: Interpreter, owner: Module, node: ast.Call, given: list[Value], frame: Frame) -> None:
    """A model of the project that was never moved, given a tensor of the GPU: said once, for the whole model."""
    on_gpu = any(isinstance(value, (Tensor, Tree)) and value.device == GPU for value in given)
    if owner.device != CPU or not on_gpu or owner.node is None or owner.source is None or not has_parameters(owner):
        return
    if owner.contained is not None or _built_on_the_way(owner):
        return
    origin = Origin(owner.source, owner.node, "made")
    run.log.add(Event("model-not-moved", frame.source, node, origin, frame.source.code(node.func)))
    owner.move(GPU)


def has_parameters(module: Module) -> bool:
    """Whether a module has anything that could be on a device."""
    if module.owner is None and not module.items:
        last = module.name.rsplit(".", 1)[-1]
        return last not in facts.NO_PARAMETERS and not facts.is_loss(module.name)
    held = [*module.attributes.values(), *module.items]
    return any(
        has_parameters(each) if isinstance(each, Module) else isinstance(each, Tensor) and each.follows for each in held
    )


def _given_to(value: Value, device: Device) -> Value:
    """What a wrapper that moves its inputs hands on."""
    if isinstance(value, (Tensor, Tree)):
        return replace(value, device=device)
    if isinstance(value, Sequence) and value.items is not None:
        return Sequence(tuple(_given_to(item, device) for item in value.items))
    return value


def _parametrised(
    run: Interpreter,
    owner: Module,
    last: str,
    node: ast.Call,
    given: list[Value],
    named: dict[str, Value],
    frame: Frame,
) -> Value:
    """A layer with parameters meets its input."""
    first = given[0] if given else next(iter(named.values()), UNKNOWN)
    if owner.device == CPU and isinstance(first, (Tensor, Tree)) and first.device == GPU:
        if owner.contained is not None:
            run.log.add(Event("module-not-moved-along", frame.source, node, owner.contained, "", owner.contained.name))
        elif owner.node is not None and owner.source is not None and not _built_on_the_way(owner):
            origin = Origin(owner.source, owner.node, "made")
            run.log.add(Event("model-not-moved", frame.source, node, origin, frame.source.code(node.func)))
        owner.move(GPU)
    if owner.device == GPU:
        own = Tensor(GPU)
        masks = [value for word, value in named.items() if _MASK_WORD.search(word)]
        rest = [value for word, value in named.items() if not _MASK_WORD.search(word)]
        if last in facts.RECURRENT:
            run.combine(node, [own, *given[:1]], frame, excuses=False)
            run.combine(node, [own, *given[1:], *rest], frame, "hidden", excuses=False)
        else:
            run.combine(node, [own, *given, *rest], frame, excuses=False)
        run.combine(node, [own, *masks], frame, "mask", excuses=False)
    result = Tensor(owner.device, None)
    if last in ("LSTM", "GRU", "RNN", "MultiheadAttention"):
        state: Value = Sequence((result, result)) if last == "LSTM" else result
        return Sequence((result, state))
    return Sequence((result, result)) if last == "LSTMCell" else result


def _built_on_the_way(module: Module) -> bool:
    """A layer made where it is called, which is another fault: it is never trained."""
    if module.source is None or module.node is None:
        return False
    function = module.source.function(module.node)
    return function is not None and function.name == "forward"

"""What device flow has found, as hits of a rule; and how the device is called where a repair needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.flow.analyse import assumed, events
from torchport.check.flow.events import Event
from torchport.check.rule import Change
from torchport.check.rules.kinds import FACTORIES, LEGACY
from torchport.check.source import Source, argument, parameters
from torchport.text import mark

_NO_TENSOR = re.compile(r"model|net|loader|criterion|optim|loss|data|self|cls|config|args", re.IGNORECASE)
# Made on the CPU and moved: a GPU would draw other numbers.
_MOVED = frozenset(f"torch.{name}" for name in ("from_numpy", "rand", "randn", "randint", "randperm", "normal"))
MEETS = mark("here it meets a tensor on the GPU")


def meetings(source: Source, kind: str) -> Iterator[tuple[Event, ast.AST]]:
    """The events of one kind, with the place in this file where the fault is: where the tensor was made, if here."""
    for event in events(source):
        if event.kind == kind and event.origin is not None:
            yield event, event.origin.node if event.origin.source is source else event.node


def where(source: Source, event: Event) -> tuple[tuple[int, str], ...]:
    """The line where it meets the other, unless that is in another file."""
    if event.source is not source or event.origin is None or event.node is event.origin.node:
        return ()
    return ((source.span(event.node)[0], MEETS),)


def device_expression(source: Source, node: ast.AST) -> str:
    """How the GPU is called at a place: ``x.device``, ``device``, ``self.device``; empty where it has no name."""
    function = source.function(node)
    owner = source.method_class(node)
    given = assumed(source, function) if function is not None else []
    if function is not None and owner is not None and source.is_module_class(owner):
        if given:
            return f"{given[0]}.device"
        if function.name != "__init__":
            return "next(self.parameters()).device"
    named = device_name(source, node)
    tensors = [name for name in given if not _NO_TENSOR.search(name)]
    return named or (f"{tensors[0]}.device" if tensors else "")


def device_name(source: Source, node: ast.AST) -> str:
    """The name of a variable that holds the device, bound before a place."""
    scope = source.scope_at(node)
    function = source.function(node)
    if function is not None:
        for parameter in parameters(function):
            if parameter.arg in ("device", "dev"):
                return parameter.arg
    owner = source.method_class(node) if function is not None and function.name != "__init__" else None
    if owner is not None and "device" in source.attributes(owner):
        return "self.device"
    for name in ("device", "dev", "DEVICE"):
        found = scope.find(name)
        if found is None:
            continue
        first = found[1][0].node
        outside = source.function(first) is not source.function(node)
        if outside or getattr(first, "lineno", 0) < getattr(node, "lineno", 0):
            return name
    return ""


def factory_on(source: Source, node: ast.AST, device: str) -> tuple[Change, ...]:
    """A tensor made on that device in place of the host."""
    made = source.name(node.func) if isinstance(node, ast.Call) else ""
    if not device or not isinstance(node, ast.Call) or (made not in FACTORIES and made not in LEGACY):
        return ()
    leaf = argument(node, "requires_grad") is not None
    if (made in _MOVED and not leaf) or made in LEGACY:
        end = source.span(node)[1]
        return ((end, end, f".to({device})"),)
    return (changes.add_argument(source, node, f"device={device}"),)


def moved_in_loop(source: Source, event: Event) -> tuple[Change, ...]:
    """``x = x.to(device)`` as the first statement of the loop that takes ``x`` from a loader."""
    if event.origin is None or event.origin.source is not source or event.source is not source:
        return ()
    loop = source.enclosing(event.origin.node, ast.For)
    if not isinstance(source.parent(event.origin.node), ast.For):
        loop = next((each for each in source.loops(event.node) if isinstance(each, ast.For)), None)
    if loop is None:
        return ()
    taken = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    device = device_name(source, loop)
    used = [each.id for each in ast.walk(event.node) if isinstance(each, ast.Name) and each.id in taken]
    if not device or not used or not source.indent(loop.body[0]):
        return ()
    moved = [name for name in dict.fromkeys(used) if not _moved_already(loop, name)]
    return tuple(changes.before(source, loop.body[0], f"{name} = {name}.to({device})") for name in moved)


def _moved_already(loop: ast.For, name: str) -> bool:
    """Whether the loop gives the name another value."""
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for statement in loop.body
        for each in ast.walk(statement)
    )

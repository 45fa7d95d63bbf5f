"""What device flow has found, as hits of a rule; and how the device is called where a repair needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from torchport.check import changes
from torchport.check.flow.analyse import assumed, events
from torchport.check.flow.events import Event
from torchport.check.rule import Change
from torchport.check.rules.kinds import FACTORIES, LEGACY
from torchport.check.source import Source, argument, constant, parameters
from torchport.text import mark

_NO_TENSOR = re.compile(r"model|net|loader|criterion|optim|loss|data|self|cls|config|args", re.IGNORECASE)
_SETTINGS = re.compile(r"args|cfg|conf|config|opts?|options|params|hparams|flags|settings", re.IGNORECASE)
# Made on the CPU and moved: a GPU would draw other numbers.
_MOVED = frozenset(f"torch.{name}" for name in ("from_numpy", "rand", "randn", "randint", "randperm", "normal"))
# Methods between what makes a tensor and what is done with it.
_SHAPES = frozenset("float double half long int type view reshape unsqueeze squeeze t transpose permute".split())
_FROM_LOADER = ("untransferred-batch", "untransferred-label")
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
            return name_for_all(source, node) or "next(self.parameters()).device"
    named = device_name(source, node)
    tensors = [name for name in given if not _NO_TENSOR.search(name)]
    return named or (f"{tensors[0]}.device" if tensors else "")


def name_for_all(source: Source, node: ast.AST) -> str:
    """The variable or attribute that holds the device, if whoever imports the class has it, too."""
    named = device_name(source, node)
    ways = source.scope.bindings.get(named, [])
    local = source.scope_at(node).find(named) if "." not in named else None
    hidden = local is not None and local[0] is source.scope and source.parent(ways[0].node) is not source.tree
    return "" if hidden else named


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
    return _setting(source, node)


def _setting(source: Source, node: ast.AST) -> str:
    """The device among the settings of a program, ``args.device``, where they are known by their name at a place."""
    for each in source.nodes(ast.Attribute):
        if each.attr != "device" or not isinstance(each.value, ast.Name) or not _SETTINGS.fullmatch(each.value.id):
            continue
        found = source.scope_at(node).find(each.value.id)
        first = found[1][0].node if found is not None else None
        here = first is not None and source.function(first) is source.function(node)
        if first is not None and (not here or getattr(first, "lineno", 0) < getattr(node, "lineno", 0)):
            return source.code(each)
    return ""


def factory_on(source: Source, node: ast.AST, device: str) -> tuple[Change, ...]:
    """A tensor made on that device in place of the host."""
    made = source.name(node.func) if isinstance(node, ast.Call) else ""
    if not device or not isinstance(node, ast.Call) or (made not in FACTORIES and made not in LEGACY):
        return ()
    leaf = next((each for each in node.keywords if each.arg == "requires_grad"), None)
    end = source.span(node)[1]
    if leaf is not None and made in _MOVED and constant(leaf.value) is True:  # what is moved would be no leaf
        return (changes.remove_argument(source, node, leaf), (end, end, f".to({device}).requires_grad_()"))
    last = _shaped(source, node)
    above = source.parent(last)
    if isinstance(above, ast.Attribute) and above.attr in ("to", "cpu"):  # it is brought back to the host on purpose
        return ()
    if (made in _MOVED and leaf is None) or made in LEGACY or _is_host_type(source, last):
        end = source.span(last)[1]
        return ((end, end, f".to({device})"),)
    said = argument(node, "device")
    if said is not None:
        return (changes.replace(source, said, device),)
    return (changes.add_argument(source, node, f"device={device}"),)


def _shaped(source: Source, node: ast.expr) -> ast.expr:
    """The end of ``torch.from_numpy(x).float().unsqueeze(0)``: what is moved is what comes out of it."""
    last = node
    while True:
        above = source.parent(last)
        call = source.parent(above) if isinstance(above, ast.Attribute) and above.attr in _SHAPES else None
        if not isinstance(call, ast.Call) or call.func is not above:
            return last
        last = call


def _is_host_type(source: Source, node: ast.expr) -> bool:
    """Whether the last that happens to a tensor is ``.type(torch.FloatTensor)``, which has it on the CPU."""
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return isinstance(node, ast.Call) and source.name(given) in LEGACY and source.name(node.func) not in LEGACY


def moved_in_loop(source: Source, event: Event) -> tuple[Change, ...]:
    """``x, y = x.to(device), y.to(device)`` as the first statement of the loop that takes them from a loader: for all
    that meets the GPU there, in one line.
    """
    loop, met = _taken(source, event)
    device = device_name(source, loop) if loop is not None else ""
    if loop is None or not met or not device or not source.indent(loop.body[0]):
        return ()
    for other in events(source):
        if other.kind in _FROM_LOADER and _taken(source, other)[0] is loop:
            met |= _taken(source, other)[1]
    names = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name) and each.id in met]
    moved = [name for name in dict.fromkeys(names) if not _moved_already(loop, name)]
    return (changes.before(source, loop.body[0], all_moved(moved, device)),) if moved else ()


def all_moved(names: Sequence[str], device: str) -> str:
    """``x, y = x.to(device), y.to(device)``."""
    return f"{', '.join(names)} = {', '.join(f'{name}.to({device})' for name in names)}"


def _taken(source: Source, event: Event) -> tuple[ast.For | None, set[str]]:
    """The loop that takes what meets the GPU from a loader, and the names of the loop that are in it."""
    if event.origin is None or event.origin.source is not source or event.source is not source:
        return None, set()
    loop = source.enclosing(event.origin.node, ast.For)
    if not isinstance(source.parent(event.origin.node), ast.For):
        loop = next((each for each in source.loops(event.node) if isinstance(each, ast.For)), None)
    if loop is None:
        return None, set()
    taken = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    return loop, {each.id for each in ast.walk(event.node) if isinstance(each, ast.Name) and each.id in taken}


def _moved_already(loop: ast.For, name: str) -> bool:
    """Whether the loop gives the name another value."""
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        for statement in loop.body
        for each in ast.walk(statement)
    )

"""The device-flow events of one file: its program as it would run, and each module class in its own right."""

from __future__ import annotations

import ast
import re

from torchport.check.flow.events import Event
from torchport.check.flow.frame import Frame
from torchport.check.flow.interpret import Interpreter, TooLong
from torchport.check.flow.layers import has_parameters
from torchport.check.flow.values import GPU, UNKNOWN, Class, Function, Module, Tensor, Value
from torchport.check.names import Function as Method
from torchport.check.source import FUNCTION_DEFS, Source, parameters

# Parameters of forward that are no tensors, or that belong on the host.
_NO_TENSOR = re.compile(
    r"len|size|shape|num|^n_|dim|steps?$|epoch|idx$|index$|flag|mode|name|training|return|use_|^is_|scale|ratio|rate|"
    r"device|dtype|eps|alpha|beta|gamma|temp|^t$|^k$|^n$|^i$|config|args|kwargs|cfg|options|path|prob$"
)
_TENSOR_ANNOTATION = re.compile(r"Tensor\b")
_TENSOR_USE = frozenset(
    "size shape view reshape to device unsqueeze squeeze transpose permute mean sum float long dim".split()
)
# Classes that move what they are given by themselves.
_MOVED_BY_FRAMEWORK = re.compile(r"LightningModule|LightningDataModule|pl\.LightningModule")


def events(source: Source) -> list[Event]:
    """What meets across devices, in the order of the text; computed once a source."""
    known: list[Event] | None = source.remembered.get("events")
    if known is None:
        known = source.remembered["events"] = _events(source)
    return known


def _events(source: Source) -> list[Event]:
    run = Interpreter(source.sibling)
    try:
        frame = run.module(source)
        _classes(run, source, frame)
        _functions(run, source, frame)
        _rest(run, source, frame)
    except (TooLong, RecursionError):
        pass
    found = [
        event for event in run.log.events.values() if source in (event.source, event.origin and event.origin.source)
    ]
    return sorted(found, key=lambda event: (getattr(event.node, "lineno", 0), event.kind))


def modules(source: Source) -> list[ast.Call]:
    """The calls of a file that make a module with parameters, in the order of the text; not those in a module class,
    whose parts go where it goes.
    """
    return [call for where, call in built(source) if where is source]


def built(source: Source) -> list[tuple[Source, ast.Call]]:
    """The same for the program that begins in a file: those of other files, too, as far as it calls them."""
    run = Interpreter(source.sibling)
    try:
        frame = run.module(source)
        _rest(run, source, frame)
    except (TooLong, RecursionError):
        pass
    found = {
        (made.source, made.node)
        for made in run.made
        if made.source is not None and isinstance(made.node, ast.Call) and has_parameters(made)
    }
    whole = [(where, node) for where, node in found if not _is_part(where, node)]
    return sorted(whole, key=lambda each: (each[0] is not source, each[0].path, each[1].lineno, each[1].col_offset))


def _is_part(source: Source, node: ast.Call) -> bool:
    owner = source.enclosing(node, ast.ClassDef)
    return isinstance(owner, ast.ClassDef) and source.is_module_class(owner)


def _classes(run: Interpreter, source: Source, frame: Frame) -> None:
    """Each module class on the GPU, with inputs there; then the methods that nothing has called so far."""
    made = [each for node in source.nodes(ast.ClassDef) if (each := _on_gpu(run, source, node, frame)) is not None]
    for module in made:
        _call(run, source, module, "forward", frame)
    for module in made:
        for name in _others(module.owner.node) if module.owner else ():
            _call(run, source, module, name, frame)


def _functions(run: Interpreter, source: Source, frame: Frame) -> None:
    """Custom functions of autograd, given tensors of the GPU."""
    for node in source.nodes(ast.ClassDef):
        if not any(source.name(base) == "torch.autograd.Function" for base in node.bases):
            continue
        cls = frame.names.get(node.name)
        for method in node.body:
            if isinstance(cls, Class) and isinstance(method, FUNCTION_DEFS) and method.name in ("forward", "backward"):
                given: list[Value] = [UNKNOWN]
                for position, parameter in enumerate(parameters(method)[1:]):
                    tensor = position == 0 or _used_as_tensor(source, method, parameter.arg)
                    given.append(Tensor(GPU, assumed=True) if tensor else UNKNOWN)
                run.call_function(Function(source, method, None, frame), given, {}, frame)


def _on_gpu(run: Interpreter, source: Source, node: ast.ClassDef, frame: Frame) -> Module | None:
    if source.enclosing(node, *FUNCTION_DEFS) is not None or not source.is_module_class(node):
        return None
    if any(_MOVED_BY_FRAMEWORK.search(source.code(base)) for base in node.bases):
        return None
    cls = frame.names.get(node.name)
    if not isinstance(cls, Class) or cls.node is not node:
        return None
    made = run.instance(cls, [], {}, frame, node)
    if not isinstance(made, Module):
        return None
    made.move(GPU)
    return made


def _call(run: Interpreter, source: Source, module: Module, name: str, frame: Frame) -> None:
    method = run.method(module, name)
    if method is None or method.source is not source or isinstance(method.node, ast.Lambda):
        return
    if name == "forward" or method.node not in run.called:
        run.call_function(method, [], _assumed(source, method), frame)


def _others(node: ast.ClassDef) -> list[str]:
    methods = [each.name for each in node.body if isinstance(each, FUNCTION_DEFS)]
    return [name for name in methods if name != "forward" and not name.startswith("__")]


def _assumed(source: Source, method: Function) -> dict[str, Value]:
    return {name: Tensor(GPU, assumed=True) for name in assumed(source, method.node)}


def assumed(source: Source, node: Method) -> list[str]:
    """The parameters of a method that are taken to be tensors on the GPU, in order."""
    found = []
    for position, parameter in enumerate(parameters(node)):
        name = parameter.arg
        if name in ("self", "cls"):
            continue
        annotation = source.code(parameter.annotation) if parameter.annotation is not None else ""
        if annotation:
            tensor = bool(_TENSOR_ANNOTATION.search(annotation)) and "[" not in annotation.replace("Optional[", "")
        else:
            first = position == 1 and getattr(node, "name", "") == "forward"
            tensor = not _NO_TENSOR.search(name) and (first or _used_as_tensor(source, node, name))
        if tensor and not _optional(node, name):
            found.append(name)
    return found


def _optional(node: Method, name: str) -> bool:
    """Whether a parameter may be left out: then it is what its default says."""
    spec = node.args
    words = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    given = words[len(words) - len(spec.defaults) :] if spec.defaults else []
    return name in given or name in [each.arg for each in spec.kwonlyargs]


def _used_as_tensor(source: Source, node: ast.AST, name: str) -> bool:
    for each in ast.walk(node):
        if not (isinstance(each, ast.Name) and each.id == name):
            continue
        above = source.parent(each)
        if isinstance(above, ast.Attribute) and above.attr in _TENSOR_USE:
            return True
        if isinstance(above, ast.Call) and each in above.args:
            called = source.name(above.func)
            if called.startswith("torch.nn.functional.") or (
                isinstance(above.func, ast.Attribute)
                and isinstance(above.func.value, ast.Name)
                and above.func.value.id == "self"
            ):
                return True
    return False


def _rest(run: Interpreter, source: Source, frame: Frame) -> None:
    """Functions that nobody calls, with nothing known of what they are given."""
    for node in source.nodes(ast.FunctionDef):
        if node in run.called or source.enclosing(node, ast.FunctionDef, ast.ClassDef) is not None:
            continue
        value = frame.names.get(node.name)
        if isinstance(value, Function) and value.node is node:
            run.call_function(value, [], {}, frame)


__all__ = ["assumed", "events", "modules"]

"""Runs the statements of a file on devices in place of numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from torchport.check.flow.events import Event, Log, kind_of
from torchport.check.flow.expressions import EXPRESSIONS
from torchport.check.flow.frame import Environment, Frame
from torchport.check.flow.statements import STATEMENTS
from torchport.check.flow.values import (
    CPU,
    GPU,
    UNKNOWN,
    Class,
    Const,
    Device,
    Function,
    Loader,
    Mapping,
    Module,
    Object,
    Origin,
    Sequence,
    Tensor,
    Tree,
    Value,
    flat,
    join,
)
from torchport.check.names import FUNCTIONS
from torchport.check.source import Source, parameters

_MOST_DEPTH = 6
_MOST_STEPS = 60_000


class TooLong(Exception):
    """The file is larger than it pays to follow."""


class Interpreter:
    """Follows one program. ``sibling`` gives the source of another module of the project, if there is one."""

    def __init__(self, sibling: Callable[[str], Source | None] = lambda name: None) -> None:
        self.sibling = sibling
        self.log = Log()
        self.modules: dict[str, Frame] = {}
        self.called: set[ast.AST] = set()
        self.default: Device = CPU
        self.made: list[Module] = []  # every module instance, in the order in which they were made
        self._steps = 0
        self._active: list[ast.AST] = []

    # Files

    def module(self, source: Source) -> Frame:
        """Runs a module's body once."""
        known = self.modules.get(source.path)
        if known is None:
            known = self.modules[source.path] = Frame(source, {})
            self.block(source.tree.body, known)
        return known

    # Statements

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Runs statements; True if what follows them is not reached."""
        return any(self.statement(statement, frame) for statement in body)

    def statement(self, node: ast.stmt, frame: Frame) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooLong
        do = STATEMENTS.get(type(node))
        if do is not None:
            return bool(do(self, node, frame))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return isinstance(node, (ast.Raise, ast.Continue, ast.Break))

    # Assignment

    def assign(self, target: ast.expr, value: Value, frame: Frame, given: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for index, each in enumerate(targets):
                    self.assign(each, self._part(value, index, len(targets), given, frame), frame, given)
            case ast.Starred(value=inner):
                self.assign(inner, UNKNOWN, frame, given)
            case ast.Attribute(value=owner, attr=name):
                self._set_attribute(self.value(owner, frame), name, value, target, frame)
            case ast.Subscript(value=owner):
                held = self.value(owner, frame)
                at = self.value(target.slice, frame)
                if isinstance(held, Mapping):
                    key = at.value if isinstance(at, Const) else None
                    if key is not None:
                        held.items[key] = value
                elif isinstance(held, Tensor) and isinstance(at, Tensor):
                    self.combine(target, [held, value], frame)

    def _part(self, value: Value, index: int, count: int, given: ast.expr, frame: Frame) -> Value:
        if isinstance(value, Sequence):
            if value.items is not None:
                return value.items[index] if index < len(value.items) and len(value.items) == count else UNKNOWN
            return value.element
        if isinstance(value, (Tree, Tensor)):
            return self.indexed(value, given)
        return UNKNOWN

    def _set_attribute(self, owner: Value, name: str, value: Value, node: ast.Attribute, frame: Frame) -> None:
        statement = frame.source.statement(node)
        if isinstance(owner, Object):
            if isinstance(value, Tensor) and value.origin is not None and value.device == CPU:
                value = replace(value, origin=Origin(frame.source, statement, "factory", name))
            owner.attributes[name] = value
        elif isinstance(owner, Module):
            if isinstance(value, Tensor) and not value.follows and name not in ("data", "grad"):
                value = replace(value, origin=Origin(frame.source, statement, "attribute", name))
            held = _modules(value) if isinstance(value, (Sequence, Mapping)) else ()
            for module in held:  # a plain list: the module does not take them along
                module.contained = Origin(frame.source, statement, "attribute", name)
            owner.attributes[name] = value
        elif isinstance(owner, Tensor) and name == "data":
            return

    # Expressions

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """What an expression is."""
        read = EXPRESSIONS.get(type(node))
        if read is not None:
            return read(self, node, frame)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return UNKNOWN

    # What operators do

    def indexed(self, value: Tree | Tensor, node: ast.AST) -> Value:
        if isinstance(value, Tree):
            return value
        return value.with_dims(None if value.dims is None else value.dims - 1)

    def element(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """What iterating over a value gives."""
        match value:
            case Sequence():
                return value.each()
            case Loader(item=item):
                origin = Origin(frame.source, node, "batch")
                return Tree(item.device, origin) if isinstance(item, Tree) else item
            case Tree():
                return value
            case Tensor():
                return self.indexed(value, node)
            case Object(attributes=attributes) if value.owner.is_record() and attributes:
                return Sequence(tuple(attributes.values())).each()
            case Module(items=items) if items:
                return items[0]
            case Module(attributes=attributes) if "0" in attributes:
                return attributes["0"]
        return UNKNOWN

    def combine(
        self,
        node: ast.AST,
        values: list[Value],
        frame: Frame,
        role: str = "",
        in_place: bool = False,
        excuses: bool = True,
    ) -> Value:
        """An operator on several values: tensors of two devices meet; the result is where the tensors are.

        ``in_place`` writes into the first; ``excuses`` is true of operators that let a CPU tensor without dimensions
        through.
        """
        tensors = [each for each in flat(values) if isinstance(each, (Tensor, Tree))]
        if not tensors:
            return UNKNOWN
        first = tensors[0]
        if in_place and first.device == CPU and any(each.device == GPU for each in tensors[1:]):
            self._event(kind_of(first, role), node, first, frame, "")
            tensors[0] = replace(first, device=GPU)
        self.meet(node, tensors, frame, role, excuses)
        devices = {each.device for each in tensors if each.device == GPU or not _is_number(each)}
        device: Device = GPU if GPU in devices else None if None in devices else CPU
        made = (each.origin for each in tensors if each.device == CPU and each.origin)
        origin = next(made, None) if device == CPU else None
        numbers = all(isinstance(each, Tensor) and each.numbers for each in tensors)
        unsure = any(isinstance(each, Tensor) and each.numbers is None for each in tensors)
        dims = [each.dims if isinstance(each, Tensor) else None for each in tensors]
        most = None if None in dims else max(each for each in dims if each is not None)
        return Tensor(device, origin, numbers if not unsure else None, dims=most)

    def meet(
        self, node: ast.AST, tensors: list[Tensor | Tree], frame: Frame, role: str = "", excuses: bool = True
    ) -> None:
        """Says that tensors meet in one operator."""
        there = next((each for each in tensors if each.device == GPU), None)
        if there is None:
            return
        for each in tensors:
            excused = isinstance(each, Tensor) and (each.numbers is not False if excuses else each.numbers is True)
            if each.device == CPU and not excused:
                self._event(kind_of(each, role), node, each, frame, "")

    def _event(self, kind: str, node: ast.AST, offender: Tensor | Tree, frame: Frame, other: str) -> None:
        if offender.origin is None:
            return
        self.log.add(Event(kind, frame.source, node, offender.origin, other, offender.origin.name))

    # Calls of the project's own code

    def method(self, owner: Module | Object, name: str) -> Function | None:
        """A method of the project's class or of one that it inherits from."""
        waiting, seen = [owner.owner], set()
        while waiting:
            cls = waiting.pop(0)
            if cls is None or cls.node in seen:
                continue
            seen.add(cls.node)
            for statement in cls.node.body:
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == name:
                    static = any(getattr(each, "id", "") == "staticmethod" for each in statement.decorator_list)
                    return Function(cls.source, statement, None if static else owner, self.modules.get(cls.source.path))
            frame = self.modules.get(cls.source.path)
            for base in cls.node.bases:
                found = self.value(base, frame) if frame is not None else UNKNOWN
                if isinstance(found, Class):
                    waiting.append(found)
        return None

    def call_function(self, function: Function, given: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        """Runs a function of the project on these values."""
        node = function.node
        if frame.depth >= _MOST_DEPTH or node in self._active:
            return UNKNOWN
        self.called.add(node)
        names = self.arguments(function, given, named)
        around = function.around or self.modules.get(function.source.path)
        inner = Frame(function.source, names, around, frame.depth + 1)
        self._active.append(node)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, inner)
            self.block(node.body, inner)
        finally:
            self._active.pop()
        if node in _generators(function.source):
            return UNKNOWN
        if not inner.returned:
            return Const(None)
        result = inner.returned[0]
        for other in inner.returned[1:]:
            result = join(result, other)
        return result

    def arguments(self, function: Function, given: list[Value], named: dict[str, Value]) -> Environment:
        """The parameters of a function with what a call gives for them, or their defaults."""
        spec = function.node.args
        words = [each.arg for each in (*spec.posonlyargs, *spec.args)]
        values = [*([function.bound] if function.bound is not None else []), *given]
        names: Environment = {each.arg: UNKNOWN for each in parameters(function.node)}
        defaults = dict(zip(reversed(words), reversed(spec.defaults), strict=False))
        defaults.update({a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
        home = Frame(function.source, {}, function.around or self.modules.get(function.source.path))
        for name, default in defaults.items():
            names[name] = self.value(default, home)
        names.update(zip(words, values, strict=False))
        names.update({name: value for name, value in named.items() if name in names})
        return names

    def instance(self, cls: Class, given: list[Value], named: dict[str, Value], frame: Frame, node: ast.AST) -> Value:
        """A new object of a class of the project."""
        made: Module | Object
        if cls.is_module() or self._inherits_module(cls):
            made = Module(owner=cls, device=self.default, node=node, source=frame.source)
            self.made.append(made)
        else:
            made = Object(cls)
        start = self.method(made, "__init__")
        if start is not None:
            self.call_function(start, given, named, frame)
        elif isinstance(made, Object):
            fields = cls.fields()
            if len(given) == 1 and isinstance(given[0], Sequence) and given[0].items is None:  # Batch(*tensors)
                made.attributes.update(dict.fromkeys(fields, given[0].element))
            else:
                made.attributes.update(zip(fields, given, strict=False))
            made.attributes.update({name: value for name, value in named.items() if name in fields})
        elif self._is_sequential(cls):
            made.items += given
        return made

    def _is_sequential(self, cls: Class) -> bool:
        return any(cls.source.name(base) == "torch.nn.Sequential" for base in cls.node.bases)

    def _inherits_module(self, cls: Class) -> bool:
        frame = self.modules.get(cls.source.path)
        for base in cls.node.bases:
            found = self.value(base, frame) if frame is not None else UNKNOWN
            if isinstance(found, Class) and (found.is_module() or self._inherits_module(found)):
                return True
        return False


def _generators(source: Source) -> set[ast.AST]:
    """The functions of a file that yield."""
    found: set[ast.AST] | None = source.remembered.get("generators")
    if found is None:
        yields = (*source.nodes(ast.Yield), *source.nodes(ast.YieldFrom))
        found = {function for each in yields if (function := source.enclosing(each, *FUNCTIONS)) is not None}
        source.remembered["generators"] = found
    return found


def _modules(value: Sequence | Mapping) -> list[Module]:
    held = list(flat([value])) if isinstance(value, Sequence) else list(value.items.values())
    return [each for each in held if isinstance(each, Module)]


def _is_number(value: Tensor | Tree) -> bool:
    return isinstance(value, Tensor) and value.numbers is True

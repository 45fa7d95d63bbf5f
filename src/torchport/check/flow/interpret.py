"""Runs the statements of a file on devices in place of numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from torchport.check.flow import torch_facts as facts
from torchport.check.flow.events import Event, Log, kind_of
from torchport.check.flow.tests import truth
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
    flat,
    join,
)
from torchport.check.names import FUNCTIONS
from torchport.check.source import Source, parameters

_MOST_DEPTH = 6
_MOST_STEPS = 60_000

Environment = dict[str, Value]


class TooLong(Exception):
    """The file is larger than it pays to follow."""


class Frame:
    """One running function or module: its file, its names, what it has returned."""

    def __init__(self, source: Source, names: Environment, around: Frame | None = None, depth: int = 0) -> None:
        self.source = source
        self.names = names
        self.around = around
        self.depth = depth
        self.returned: list[Value] = []

    def look_up(self, name: str) -> Value | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.around
        return None


class Interpreter:
    """Follows one program. ``sibling`` gives the source of another module of the project, if there is one."""

    def __init__(self, sibling: Callable[[str], Source | None] = lambda name: None) -> None:
        self.sibling = sibling
        self.log = Log()
        self.modules: dict[str, Frame] = {}
        self.called: set[ast.AST] = set()
        self.default: Device = CPU
        self.quiet = 0
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
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            return bool(method(node, frame))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return isinstance(node, (ast.Raise, ast.Continue, ast.Break))

    def _Expr(self, node: ast.Expr, frame: Frame) -> None:
        self.value(node.value, frame)

    def _Return(self, node: ast.Return, frame: Frame) -> bool:
        frame.returned.append(self.value(node.value, frame) if node.value else Const(None))
        return True

    def _Assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame, node.value)

    def _AnnAssign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame, node.value)

    def _AugAssign(self, node: ast.AugAssign, frame: Frame) -> None:
        left, right = self.value(node.target, frame), self.value(node.value, frame)
        result = self.combine(node, [left, right], frame, in_place=True)
        if isinstance(left, Sequence):
            result = join(left, right) if isinstance(right, Sequence) else UNKNOWN
        self.assign(node.target, result, frame, node.value)

    def _FunctionDef(self, node: ast.FunctionDef, frame: Frame) -> None:
        frame.names[node.name] = Function(frame.source, node, around=frame)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, frame: Frame) -> None:
        frame.names[node.name] = Class(frame.source, node)

    def _Import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            frame.names.pop(alias.asname or alias.name.split(".")[0], None)

    def _ImportFrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = self._sibling(node, frame)
        for alias in node.names:
            name = alias.asname or alias.name
            if base is not None and alias.name == "*":
                frame.names.update(base.names)
            elif base is not None and alias.name in base.names:
                frame.names[name] = base.names[alias.name]
            else:
                frame.names.pop(name, None)

    def _sibling(self, node: ast.ImportFrom, frame: Frame) -> Frame | None:
        name = node.module or ""
        if node.level:
            parents = frame.source.module.split(".")[: -node.level]
            name = ".".join([*parents, *([name] if name else [])])
        source = self.sibling(name) if name else None
        return self.module(source) if source is not None else None

    def _If(self, node: ast.If, frame: Frame) -> bool:
        decided = truth(node.test, frame, self)
        if decided is None:
            self.value(node.test, frame)
            before = dict(frame.names)
            ended = self.block(node.body, frame)
            first, frame.names = frame.names, before
            other_ended = self.block(node.orelse, frame)
            if ended:
                return other_ended
            if other_ended:
                frame.names = first
                return False
            frame.names = _joined(first, frame.names)
            return False
        return self.block(node.body if decided else node.orelse, frame)

    def _For(self, node: ast.For, frame: Frame) -> None:
        element = self.element(self.value(node.iter, frame), node.iter, frame)
        for _round in range(2):
            self.assign(node.target, element, frame, node.iter)
            self.block(node.body, frame)
        self.block(node.orelse, frame)

    _AsyncFor = _For

    def _While(self, node: ast.While, frame: Frame) -> None:
        self.value(node.test, frame)
        for _round in range(2):
            self.block(node.body, frame)

    def _With(self, node: ast.With, frame: Frame) -> bool:
        before = self.default
        for item in node.items:
            value = self.value(item.context_expr, frame)
            if isinstance(value, DeviceValue):  # with torch.device("cuda"):
                self.default = value.device
            if item.optional_vars is not None:
                self.assign(item.optional_vars, UNKNOWN, frame, item.context_expr)
        ended = self.block(node.body, frame)
        self.default = before
        return ended

    _AsyncWith = _With

    def _Try(self, node: ast.Try, frame: Frame) -> bool:
        ended = self.block(node.body, frame)
        if not ended:
            self.block(node.orelse, frame)
        self.block(node.finalbody, frame)
        return False

    def _Delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame.names.pop(target.id, None)

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
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            result: Value = method(node, frame)
            return result
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return UNKNOWN

    def _Constant(self, node: ast.Constant, frame: Frame) -> Value:
        return Const(node.value)

    def _Name(self, node: ast.Name, frame: Frame) -> Value:
        value = frame.look_up(node.id)
        return UNKNOWN if value is None else value

    def _Attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        owner = self.value(node.value, frame)
        if isinstance(owner, (Module, Object)):
            if node.attr in owner.attributes:
                return owner.attributes[node.attr]
            method = self.method(owner, node.attr)
            if method is not None:
                if any(
                    frame.source.name(each) or getattr(each, "id", "") == "property" for each in _decorators(method)
                ) and (_is_property(method)):
                    return self.call_function(method, [], {}, frame)
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
        source = self._module_of(node.value, frame)
        if source is not None:
            return self.module(source).names.get(node.attr, UNKNOWN)
        return UNKNOWN

    def _module_of(self, node: ast.expr, frame: Frame) -> Source | None:
        name = frame.source.name(node) if isinstance(node, ast.Name) else ""
        return self.sibling(name) if name and not name.startswith("torch") else None

    def _Tuple(self, node: ast.Tuple | ast.List, frame: Frame) -> Value:
        if any(isinstance(each, ast.Starred) for each in node.elts):
            return Sequence(None, UNKNOWN)
        return Sequence(tuple(self.value(each, frame) for each in node.elts))

    _List = _Tuple

    def _Dict(self, node: ast.Dict, frame: Frame) -> Value:
        items: dict[object, Value] = {}
        for key, each in zip(node.keys, node.values, strict=True):
            value = self.value(each, frame)
            if isinstance(key, ast.Constant):
                items[key.value] = value
            elif isinstance(value, Module):
                items[object()] = value
        return Mapping(items)

    def _ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
        inner = self._comprehension(node, frame)
        element = self.value(node.elt, inner)
        if len(node.generators) == 1 and isinstance(element, (Tensor, Module)):
            return Sequence(None, element)
        return Sequence(None, element)

    _SetComp = _GeneratorExp = _ListComp

    def _DictComp(self, node: ast.DictComp, frame: Frame) -> Value:
        inner = self._comprehension(node, frame)
        value = self.value(node.value, inner)
        if isinstance(value, (Tensor, Tree)):
            return Tree(value.device, value.origin)
        return Mapping({object(): value}) if isinstance(value, Module) else UNKNOWN

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Frame:
        inner = Frame(frame.source, {}, frame, frame.depth)
        for each in node.generators:
            self.assign(each.target, self.element(self.value(each.iter, inner), each.iter, inner), inner, each.iter)
        return inner

    def _IfExp(self, node: ast.IfExp, frame: Frame) -> Value:
        decided = truth(node.test, frame, self)
        if decided is not None:
            return self.value(node.body if decided else node.orelse, frame)
        self.value(node.test, frame)
        return join(self.value(node.body, frame), self.value(node.orelse, frame))

    def _Lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return Function(frame.source, node, around=frame)

    def _NamedExpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame, node.value)
        return value

    def _Await(self, node: ast.Await, frame: Frame) -> Value:
        return self.value(node.value, frame)

    def _Starred(self, node: ast.Starred, frame: Frame) -> Value:
        self.value(node.value, frame)
        return UNKNOWN

    def _UnaryOp(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        return value if isinstance(value, Tensor) else UNKNOWN

    def _BoolOp(self, node: ast.BoolOp, frame: Frame) -> Value:
        found = [self.value(each, frame) for each in node.values]
        return found[0] if len(set(map(id, found))) == 1 else UNKNOWN

    def _BinOp(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(node.op, ast.Add):
            if left.items is not None and right.items is not None:
                return Sequence(left.items + right.items)
            return Sequence(None, join(left.each(), right.each()))
        if isinstance(left, Sequence) and isinstance(node.op, ast.Mult):
            return Sequence(None, left.each())
        return self.combine(node, [left, right], frame, role="mask" if _is_bitwise(node.op) else "")

    def _Compare(self, node: ast.Compare, frame: Frame) -> Value:
        found = [self.value(each, frame) for each in (node.left, *node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return UNKNOWN
        return self.combine(node, found, frame)

    def _Subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        owner = self.value(node.value, frame)
        indices = self._indices(node.slice, frame)
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
            return self.element(owner, node, frame) if not isinstance(node.slice, ast.Slice) else owner
        if isinstance(owner, Tensor):
            for index in indices:
                if isinstance(index, Tensor) and owner.device == CPU and index.device == GPU and not owner.numbers:
                    self._event("index-device-mismatch", node, owner, frame, frame.source.code(node.slice))
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
            plain = all(
                isinstance(each, (ast.Slice, ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp)) for each in several
            )
            return owner.with_dims(owner.dims - taken if owner.dims is not None and plain else None)
        return self.indexed(owner, node) if isinstance(owner, Tree) else UNKNOWN

    def _indices(self, node: ast.expr, frame: Frame) -> list[Value]:
        if isinstance(node, ast.Tuple):
            return [self.value(each, frame) for each in node.elts]
        if isinstance(node, ast.Slice):
            for each in (node.lower, node.upper, node.step):
                if each is not None:
                    self.value(each, frame)
            return []
        return [self.value(node, frame)]

    def _Call(self, node: ast.Call, frame: Frame) -> Value:
        from torchport.check.flow.calls import call

        return call(self, node, frame)

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
        if GPU in devices:
            device: Device = GPU
        elif None in devices or any(not isinstance(each, (Tensor, Tree, Const)) for each in values):
            device = None if None in devices else CPU
        else:
            device = CPU
        origin = next((each.origin for each in tensors if each.device == CPU and each.origin), None)
        if device != CPU:
            origin = None
        elif origin is not None and origin.how == "attribute":
            origin = replace(origin)
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
        if self.quiet or offender.origin is None:
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


def _joined(left: Environment, right: Environment) -> Environment:
    return {
        name: join(left[name], right[name]) if name in left and name in right else (left.get(name) or right[name])
        for name in {**left, **right}
    }


def _modules(value: Sequence | Mapping) -> list[Module]:
    held = list(flat([value])) if isinstance(value, Sequence) else list(value.items.values())
    return [each for each in held if isinstance(each, Module)]


def _decorators(function: Function) -> list[ast.expr]:
    return [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list


def _is_property(function: Function) -> bool:
    return any(getattr(each, "id", "") == "property" for each in _decorators(function))


def _is_number(value: Tensor | Tree) -> bool:
    return isinstance(value, Tensor) and value.numbers is True


def _is_bitwise(op: ast.operator) -> bool:
    return isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis)


__all__ = ["Array", "Frame", "Interpreter", "Loader", "Optimizer", "TooLong"]

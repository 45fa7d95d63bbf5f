"""Source: one Python file as rules see it, with every node's parent, every name's meaning and every place's offset."""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from torchport.check.names import (
    BINDERS,
    COMPREHENSIONS,
    FUNCTIONS,
    SCOPES,
    Binding,
    Function,
    Scope,
    bindings,
    canonical,
    children,
    in_body,
)
from torchport.check.parsing import Unreadable as Unreadable
from torchport.check.parsing import parse

LINE_END = re.compile(r"\r\n|\r|\n")
FUNCTION_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Node = TypeVar("_Node", bound=ast.AST)

# Methods that give back the object they are called on, or one of its kind.
_KEEPERS = frozenset(
    "to cuda cpu xpu float double half bfloat16 train eval requires_grad_ share_memory manual_seed".split()
)
_SCOPE_TYPES = frozenset(SCOPES)
_MOST_STEPS = 12  # from a name to what made it


class Source:
    """``path`` is relative to the project, ``module`` the name by which others import the file.

    Offsets count characters of ``text``. Raises Unreadable where the text does not parse.
    """

    kind = "python"

    def __init__(self, path: str, text: str, module: str = "") -> None:
        self.path = path
        self.text = text
        self.module = module
        self.tree = parse(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._by_type: dict[type, list[Any]] = defaultdict(list)
        self._scopes: dict[ast.AST, Scope] = {}
        self._name_scopes: dict[ast.AST, Scope] = {}
        self._names: dict[ast.AST, str] = {}
        self.scope = Scope(self.tree, None)
        # The source of another module of the project, None for one that is not of it; who reads files sets it.
        self.sibling: Callable[[str], Source | None] = _no_sibling
        self.remembered: dict[str, Any] = {}  # what analyses keep for the rules that share them
        self._read()

    @property
    def written(self) -> str:
        """What the user wrote, at the same offsets; a notebook has more than Python."""
        return self.text

    def again(self, written: str) -> Source:
        """The same file with another text."""
        other = Source(self.path, written, self.module)
        other.sibling = self.sibling
        return other

    # Reading

    def _read(self) -> None:
        by_type, parents, places = self._by_type, self.parents, self._name_scopes
        self._scopes[self.tree] = self.scope
        waiting: list[tuple[ast.AST, Scope]] = [(self.tree, self.scope)]
        while waiting:
            node, scope = waiting.pop()
            kind = type(node)
            by_type[kind].append(node)
            if kind is ast.Name:
                places[node] = scope
                continue
            if kind in BINDERS:
                for name, binding in bindings(node, self.module):
                    scope.bind(name, binding)
                if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and node.module:
                    scope.stars.append(node.module)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                scope.elsewhere.update(node.names)
            inner, is_function = scope, False
            if kind in _SCOPE_TYPES and node is not self.tree:
                inner = self._scopes[node] = Scope(node, scope)
                is_function = isinstance(node, FUNCTIONS)
                if isinstance(node, FUNCTIONS):
                    for parameter in parameters(node):
                        inner.bind(parameter.arg, Binding(parameter))
            for child in reversed(children(node)):
                parents[child] = node
                waiting.append((child, scope if is_function and not in_body(node, child) else inner))

    # Places

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in LINE_END.finditer(self.text))]

    def offset(self, line: int, column_bytes: int) -> int:
        """The offset of a position as the syntax tree has it: line from 1, column in bytes of UTF-8."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
        row = self.text[start:end]
        if row.isascii():
            return start + column_bytes
        return start + len(row.encode()[:column_bytes].decode(errors="ignore"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends; parentheses around it are not part of it."""
        any_node: Any = node
        return (
            self.offset(any_node.lineno, any_node.col_offset),
            self.offset(any_node.end_lineno, any_node.end_col_offset),
        )

    def code(self, node: ast.AST) -> str:
        """A node as the user wrote it."""
        start, end = self.span(node)
        return self.text[start:end]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1, the column in characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def indent(self, node: ast.AST) -> str:
        """What stands before a statement in its line, where that is only white space."""
        start = self.span(node)[0]
        head = self.text[self._line_starts[self.position(start)[0] - 1] : start]
        return head if not head.strip() else ""

    @cached_property
    def newline(self) -> str:
        """The line ends of this file: those of its first line."""
        match = LINE_END.search(self.text)
        return match[0] if match else "\n"

    # The tree

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of one type, in the order of the text."""
        return self._by_type[kind]

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From a node's parent to the module."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> Any:
        """The nearest ancestor of one of these types, None where there is none."""
        return next((each for each in self.ancestors(node) if isinstance(each, kinds)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is part of, or is."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function in which a node stands, None at the top of a module."""
        found: ast.FunctionDef | ast.AsyncFunctionDef | None = self.enclosing(
            node, ast.FunctionDef, ast.AsyncFunctionDef
        )
        return found

    def method_class(self, node: ast.AST) -> ast.ClassDef | None:
        """The class of the method in which a node stands."""
        function = self.function(node)
        while function is not None:
            above = self.parents.get(function)
            if isinstance(above, ast.ClassDef):
                return above
            function = self.function(function)
        return None

    def loops(self, node: ast.AST) -> list[ast.For | ast.While]:
        """The loops around a node in its own function, innermost first; not those whose head it stands in."""
        found: list[ast.For | ast.While] = []
        child = node
        for above in self.ancestors(node):
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
                break
            if isinstance(above, (ast.For, ast.While)) and any(child is each for each in above.body):
                found.append(above)
            child = above
        return found

    def scope_at(self, node: ast.AST) -> Scope:
        """The scope in which a node's names are looked up."""
        if node in self._name_scopes:
            return self._name_scopes[node]
        child = node
        for above in self.ancestors(node):
            scope = self._scopes.get(above)
            if scope is not None and not (isinstance(above, FUNCTIONS) and not in_body(above, child)):
                return scope
            child = above
        return self.scope

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope that a module, class, function or comprehension opens."""
        return self._scopes[node]

    # Meaning

    def name(self, node: ast.AST | None) -> str:
        """The dotted name of what an expression refers to, ``torch.nn.Linear`` say; empty where that is unknown."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ""
        if node not in self._names:
            self._names[node] = canonical(self._dotted(node, _MOST_STEPS))
        return self._names[node]

    def _dotted(self, node: ast.AST | None, steps: int) -> str:
        if steps <= 0:
            return ""
        if isinstance(node, ast.Attribute):
            base = self._dotted(node.value, steps - 1)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        found = self.scope_at(node).find(node.id)
        if found is None:
            stars = [star for star in self.scope.stars if star.split(".")[0] in ("torch", "torchvision")]
            return f"{stars[0]}.{node.id}" if len(stars) == 1 and not hasattr(builtins, node.id) else ""
        scope, ways = found
        if any(way.imported for way in ways):  # try: import … except ImportError: import …
            return next(way.imported for way in ways if way.imported)
        if len(ways) == 1:
            way = ways[0]
            if isinstance(way.value, (ast.Name, ast.Attribute)) and not isinstance(scope.node, COMPREHENSIONS):
                return self._dotted(way.value, steps - 1)
            if isinstance(way.node, (ast.ClassDef, ast.FunctionDef)) and scope is self.scope:
                return f"{self.module}.{node.id}" if self.module else node.id
        return ""

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        found: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self.nodes(ast.Call):
            name = self.name(call.func)
            if name:
                found[name].append(call)
            if isinstance(call.func, ast.Attribute):
                found[f".{call.func.attr}"].append(call)
        return found

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls of these dotted names; ``.name`` means a method of any object."""
        found = [call for name in names for call in self._calls.get(name, ())]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset)) if len(names) > 1 else found

    def values(self, node: ast.AST) -> list[ast.expr]:
        """The expressions that a name or an attribute of self was given, or the expression itself."""
        found: dict[ast.expr, None] = {}
        self._values(node, found, set())
        return list(found)

    def _values(self, node: ast.AST, found: dict[ast.expr, None], seen: set[ast.AST]) -> None:
        if node in seen:
            return
        seen.add(node)
        given: list[ast.expr] = []
        if isinstance(node, ast.Name):
            ways = self.scope_at(node).find(node.id)
            given = [way.value for way in ways[1] if way.value is not None] if ways is not None else []
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            owner = self.method_class(node)
            given = self.attributes(owner).get(node.attr, []) if owner is not None else []
        elif isinstance(node, ast.IfExp):
            given = [node.body, node.orelse]
        elif isinstance(node, ast.expr):
            found[node] = None
        for value in given:
            self._values(value, found, seen)

    def attributes(self, owner: ast.ClassDef) -> dict[str, list[ast.expr]]:
        """What the methods of a class assign to attributes of self."""
        return self._attributes.get(owner, {})

    @cached_property
    def _attributes(self) -> dict[ast.ClassDef, dict[str, list[ast.expr]]]:
        found: dict[ast.ClassDef, dict[str, list[ast.expr]]] = defaultdict(lambda: defaultdict(list))
        assignments: list[ast.Assign | ast.AnnAssign] = [*self.nodes(ast.Assign), *self.nodes(ast.AnnAssign)]
        for node in assignments:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name) if node.value is not None:
                        owner = self.method_class(node)
                        if owner is not None:
                            found[owner][name].append(node.value)
        return found

    def makers(self, node: ast.AST) -> frozenset[str]:
        """The dotted names of the calls that may have made an object: ``torch.optim.SGD`` for ``opt``, say.

        Looks through names, attributes of self, ``a if b else c`` and methods that give back their object. The
        instance of a module class of this file is made by ``torch.nn.Module``, too.
        """
        made: set[str] = set()
        waiting, seen = [node], set[ast.AST]()
        while waiting:
            for value in self.values(waiting.pop()):
                if not isinstance(value, ast.Call) or value in seen:
                    continue
                seen.add(value)
                name = self.name(value.func)
                if name:
                    made.add(name)
                    if is_module_class(name) or name in self.module_classes:
                        made.add("torch.nn.Module")
                if isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPERS:
                    waiting.append(value.func.value)
        return frozenset(made)

    @cached_property
    def module_classes(self) -> frozenset[str]:
        """The dotted names of the classes of this file that are modules of torch."""
        found: dict[str, ast.ClassDef] = {}
        changed = True
        while changed:
            changed = False
            for owner in self.nodes(ast.ClassDef):
                name = f"{self.module}.{owner.name}" if self.module else owner.name
                if name not in found and any(self._is_module(base, found) for base in owner.bases):
                    found[name] = owner
                    changed = True
        return frozenset(found)

    def _is_module(self, base: ast.expr, found: dict[str, ast.ClassDef]) -> bool:
        name = self.name(base)
        return is_module_class(name) or name in found

    def is_module_class(self, owner: ast.ClassDef) -> bool:
        """Whether a class of this file is a module of torch."""
        return (f"{self.module}.{owner.name}" if self.module else owner.name) in self.module_classes


def _no_sibling(name: str) -> Source | None:
    return None


def is_module_class(name: str) -> bool:
    """Whether a dotted name is a layer or another module of torch, by the way torch spells names."""
    if name in ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.UninitializedParameter"):
        return False
    parts = name.split(".")
    if parts[0] in ("pytorch_lightning", "lightning", "lightning_fabric") and parts[-1] == "LightningModule":
        return True
    return parts[:2] == ["torch", "nn"] and parts[-1][:1].isupper() and "utils" not in parts


def parameters(function: Function) -> list[ast.arg]:
    """All parameters of a function, in order."""
    given = function.args
    found = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    return [*found, *([given.kwarg] if given.kwarg else [])]


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The argument that a call gives by name or at a position; None where it leaves it out."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.args):
        if any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
            return None
        return call.args[position]
    return None


def is_open(call: ast.Call) -> bool:
    """Whether a call passes on arguments that cannot be read here: ``*args`` or ``**kwargs``."""
    return any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args)


def constant(node: ast.AST | None) -> Any:
    """The value of a literal, None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None

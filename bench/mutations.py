"""Edits that take device handling out of a correct project, one place at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchport.check.changes import remove_argument, remove_statement
from torchport.check.decoding import decode, module_name
from torchport.check.source import Source, Unreadable, argument

LIKE = {"zeros_like": "zeros", "ones_like": "ones", "randn_like": "randn", "rand_like": "rand", "empty_like": "empty"}
NEW = {"new_zeros": "zeros", "new_ones": "ones", "new_full": "full", "new_tensor": "tensor", "new_empty": "empty"}
REGISTERED = {"torch.nn.ModuleList": "list", "torch.nn.ParameterList": "list", "torch.nn.ModuleDict": "dict"}
SWITCHES = ("torch.cuda.set_device", "torch.set_default_device", "torch.set_default_tensor_type")

_MOST_STEPS = 3

Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file of the project ``of``, which begins in line ``first`` and ends in ``line``. ``lines`` are
    those of the edit, and where what is no longer moved gets its value.
    """

    of: str
    path: str
    first: int
    line: int
    kind: str
    before: str
    text: str
    lines: frozenset[int]

    @property
    def place(self) -> str:
        return f"{self.of}/{self.path}:{self.line}"

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.place} {self.kind} {self.before}"


def mutants(project: Path, of: str) -> Iterator[Mutant]:
    """All mutants of a project with that name, file by file, in the order of the text."""
    for file in sorted(project.rglob("*.py")):
        path = file.relative_to(project).as_posix()
        try:
            source = Source(path, decode(file.read_bytes()), module_name(path))
        except Unreadable:
            continue
        seen = set()
        for call in source.nodes(ast.Call):
            for kind, (start, end, text) in edits(source, call):
                changed = source.text[:start] + text + source.text[end:]
                if changed not in seen and changed != source.text and _parses(changed):
                    seen.add(changed)
                    first, line = call.lineno, call.end_lineno or call.lineno
                    before, right = source.code(call)[:80], right_lines(source, call)
                    yield Mutant(of, path, first, line, kind, before, changed, right)


def right_lines(source: Source, call: ast.Call) -> frozenset[int]:
    """The lines of a call, those that make what it moves, and those that use the device that it hands on."""
    found = set(range(call.lineno, (call.end_lineno or call.lineno) + 1))
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is not None:
        found |= _made(source, owner, _MOST_STEPS)
    handed = (*call.args, *(word.value for word in call.keywords))
    if any(source.code(each).rsplit(".", 1)[-1] == "device" for each in handed):
        found |= _uses(source, source.code(call.func).rsplit(".", 1)[-1])
    return frozenset(found)


def _made(source: Source, node: ast.AST, steps: int) -> set[int]:
    """The lines that give an expression its value: of its names, and of what callers give to parameters."""
    found: set[int] = set()
    for name in [each for each in ast.walk(node) if isinstance(each, ast.Name)] if steps else ():
        ways = source.scope_at(name).find(name.id)
        for way in ways[1] if ways else ():
            if isinstance(way.node, ast.arg):
                for given in _given(source, way.node):
                    found |= {given.lineno} | _made(source, given, steps - 1)
            elif hasattr(way.node, "lineno"):
                found |= set(range(way.node.lineno, way.node.lineno + 1))
                value = way.value or getattr(way.node, "iter", None)
                found |= _made(source, value, steps - 1) if value is not None else set()
                found |= _returned(source, value, steps - 1) if isinstance(value, ast.Call) else set()
    return found


def _given(source: Source, parameter: ast.arg) -> list[ast.expr]:
    """What the calls of this file give to a parameter of a function of it."""
    function = source.parent(source.parent(parameter))
    if not isinstance(function, ast.FunctionDef):
        return []
    names = [each.arg for each in function.args.args]
    position = names.index(parameter.arg) if parameter.arg in names else None
    calls = [each for each in source.nodes(ast.Call) if source.code(each.func).rsplit(".", 1)[-1] == function.name]
    given = [argument(call, parameter.arg, position) for call in calls]
    return [each for each in given if each is not None]


def _returned(source: Source, call: ast.Call, steps: int) -> set[int]:
    """The lines that make what a function of this file returns."""
    found: set[int] = set()
    for function in source.nodes(ast.FunctionDef):
        if isinstance(call.func, ast.Name) and call.func.id == function.name:
            for each in ast.walk(function):
                if isinstance(each, ast.Return) and each.value is not None:
                    found |= {each.lineno} | _made(source, each.value, steps)
    return found


def _uses(source: Source, name: str) -> set[int]:
    """The lines of a function, or of a class's ``__init__``, that use its device."""
    found: set[int] = set()
    for function in source.nodes(ast.FunctionDef):
        owner = source.parent(function)
        if function.name == name or (
            function.name == "__init__" and isinstance(owner, ast.ClassDef) and owner.name == name
        ):
            found |= {each.lineno for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == "device"}
    return found


def edits(source: Source, call: ast.Call) -> Iterator[tuple[str, Edit]]:
    """The edits that one call allows, each with its kind."""
    yield from _moves(source, call)
    yield from _arguments(source, call)
    yield from _registered(source, call)
    yield from _from_others(source, call)
    if source.name(call.func) in SWITCHES and isinstance(source.parent(call), ast.Expr):
        yield "default or current device not set", remove_statement(source, source.statement(call))


def _moves(source: Source, call: ast.Call) -> Iterator[tuple[str, Edit]]:
    if not isinstance(call.func, ast.Attribute) or source.name(call.func):
        return
    method, owner = call.func.attr, call.func.value
    if method in ("to", "cuda", "cpu", "type_as") and not _is_type(source, call):
        statement = source.parent(call)
        if isinstance(statement, ast.Expr):
            yield f".{method}() dropped", remove_statement(source, statement)
        else:
            yield f".{method}() dropped", (source.span(owner)[1], source.span(call)[1], "")
        if method == "to" and call.args and not isinstance(call.args[0], ast.Constant):
            yield "moved to the CPU", (*source.span(call.args[0]), '"cpu"')


def _arguments(source: Source, call: ast.Call) -> Iterator[tuple[str, Edit]]:
    name = source.name(call.func)
    for keyword in call.keywords:
        if keyword.arg == "device":
            kind = "generator without device" if name == "torch.Generator" else "device= left out"
            yield kind, remove_argument(source, call, keyword)
            if not isinstance(keyword.value, ast.Constant):
                yield "device= of the CPU", (*source.span(keyword.value), '"cpu"')
        if keyword.arg == "map_location":
            yield "map_location left out", remove_argument(source, call, keyword)
    moves = isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda")
    for given in call.args if not moves and not name.startswith("torch.") else ():
        if isinstance(given, (ast.Name, ast.Attribute)) and source.code(given).rsplit(".", 1)[-1] == "device":
            yield "device of the CPU handed on", (*source.span(given), 'torch.device("cpu")')


def _registered(source: Source, call: ast.Call) -> Iterator[tuple[str, Edit]]:
    """What a module knows of and moves, made something that it does not."""
    name = source.name(call.func)
    match call:
        case ast.Call(
            func=ast.Attribute(attr="register_buffer", value=owner), args=[ast.Constant(value=buffer), value, *_]
        ):
            text = f"{source.code(owner)}.{buffer} = {source.code(value)}"
            yield "buffer made an attribute", (*source.span(call), text)
    if name in REGISTERED and len(call.args) == 1:
        inner = source.code(call.args[0])
        inner = f"{REGISTERED[name]}{inner}" if isinstance(call.args[0], ast.GeneratorExp) else inner
        yield f"{name.rsplit('.', 1)[-1]} made a {REGISTERED[name]}", (*source.span(call), inner)
    if name == "torch.nn.Parameter" and call.args and not call.keywords:
        yield "parameter made a tensor", (*source.span(call), f"{source.code(call.args[0])}.requires_grad_()")


def _from_others(source: Source, call: ast.Call) -> Iterator[tuple[str, Edit]]:
    """What takes its device from another tensor, made a factory that takes none."""
    last = source.name(call.func).rsplit(".", 1)[-1]
    if source.name(call.func).count(".") == 1 and last in LIKE and len(call.args) == 1 and not call.keywords:
        text = f"torch.{LIKE[last]}({source.code(call.args[0])}.shape)"
        yield "like made a factory", (*source.span(call), text)
    if isinstance(call.func, ast.Attribute) and call.func.attr in NEW and not source.name(call.func):
        start, end = source.span(call.func)
        yield "new_ made a factory", (start, end, f"torch.{NEW[call.func.attr]}")


def _is_type(source: Source, call: ast.Call) -> bool:
    """``.to(torch.float32)`` and the like."""
    if call.func.attr != "to" or not call.args:  # type: ignore[attr-defined]
        return False
    text = source.code(call.args[0])
    return (text.startswith("torch.") and "device" not in text) or "dtype" in text


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True

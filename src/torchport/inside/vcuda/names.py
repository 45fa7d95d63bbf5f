"""Tensors by the names that the user gave them, and their history, for a fault's report.

Names are read off the statement that runs in the user's innermost frames: variables, attributes, parameters of
modules. Nothing of the user's is called for that: attributes are looked up in ``__dict__`` and a module's tables.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import FrameType
from typing import Any

import torch

from torchport.inside.places import Place, variables
from torchport.inside.vcuda import tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.rules import Operand, device_name

_MISSING = object()


def describe(machine: Machine, operands: list[Operand], offender: Operand | None, remedy: str) -> dict[str, Any]:
    """The fields ``tensors``, ``offender`` and ``remedy`` of a fault."""
    frames = machine.places.frames()
    shown = _distinct(operands, offender)
    tensors = [_tensor(operand, frames) for operand in shown]
    index = next((i for i, operand in enumerate(shown) if _same(operand, offender)), None)
    fields: dict[str, Any] = {"tensors": tensors, "offender": index, "remedy": {"kind": remedy}}
    if index is not None:
        kept = _set_on_self(tensors[index]["name"], frames)
        tensors[index]["set"] = _set(shown[index].tensor, frames) or kept
        tensors[index]["handed"] = _handed(tensors[index]["name"], frames)
        if remedy == "move" and kept is not None and isinstance(variables(frames[0]).get("self"), torch.nn.Module):
            remedy = "register-buffer"
        fields["remedy"] = _remedy(tensors, index, remedy, offender, kept)
    fields["api"] = _call_text(frames[0]) if frames else None
    return fields


def _distinct(operands: list[Operand], offender: Operand | None) -> list[Operand]:
    """The offender and one operand of each other device, in the order of the call; long lists say nothing."""
    chosen: list[Operand] = []
    for operand in operands:
        if _same(operand, offender) or (
            (offender is None or operand.device != offender.device)
            and all(operand.device != other.device or _same(other, offender) for other in chosen)
        ):
            chosen.append(operand)
    return chosen


def _same(operand: Operand, offender: Operand | None) -> bool:
    return offender is not None and operand.tensor is offender.tensor


def birth(tag: tags.Tag, place: Place | None) -> tuple[Place | None, str]:
    """Where a tensor was made and by what; of one made in the running line, what it was made from."""
    origin = tag.birth
    if origin.parent is not None and origin.place == place:
        return origin.parent
    return origin.place, origin.op


def _tensor(operand: Operand, frames: list[FrameType]) -> dict[str, Any]:
    tag = tags.tag_of(operand.tensor)
    name = name_of(operand.tensor, frames)
    origin = tag.birth if tag is not None else None
    here = (frames[0].f_code, frames[0].f_lineno) if frames else None
    made = birth(tag, here) if tag is not None else (None, None)
    root = origin.root if origin is not None and origin.root is not None and origin.root[0] != made[0] else (None, None)
    return {
        "name": name,
        "device": device_name(operand.device),
        "argument": operand.name,
        "shape": [int(length) for length in operand.tensor.shape],
        "dtype": str(operand.tensor.dtype).removeprefix("torch."),
        "kind": origin.kind if origin else None,
        "born": made[0],
        "born_by": made[1],
        "root": root[0],
        "root_by": root[1],
        "built": origin.built if origin is not None and _of_module(operand.tensor, origin) else [],
        "moved": tag.moved if tag else None,
        "moved_by": (tag.moved_by or None) if tag else None,
    }


def _of_module(tensor: Any, origin: tags.Origin) -> bool:
    """Whether a tensor is a parameter or a buffer, which move with their module."""
    return isinstance(tensor, torch.nn.Parameter) or origin.kind in ("parameter", "buffer")


def _remedy(
    tensors: list[dict[str, Any]], index: int, kind: str, offender: Operand | None, kept: Place | None
) -> dict[str, Any]:
    culprit = tensors[index]
    other = next((t for t in tensors if t["device"] != culprit["device"]), None)
    target = "device"
    if other is not None:
        target = f"{other['name']}.device" if other["name"] else repr(other["device"])
    if kind in ("move", "register-buffer"):
        if culprit["kind"] in ("parameter", "buffer"):
            kind = "module-to"
        elif culprit["born_by"] in _FACTORIES:
            kind = "create-on" if kind == "move" else kind
    place = kept if kind == "register-buffer" else culprit["born"]
    return {"kind": kind, "target": culprit["name"], "device": target, "place": place}


_FACTORIES = frozenset(
    f"torch.{name}"
    for name in [
        "arange",
        "eye",
        "full",
        "linspace",
        "logspace",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "tensor",
        "zeros",
        "empty",
        "as_tensor",
        "tril_indices",
        "triu_indices",
        "FloatTensor",
        "LongTensor",
        "Tensor",
    ]
)


def name_of(tensor: Any, frames: list[FrameType]) -> str | None:
    """The expression by which a user's frame reaches this tensor's storage, the innermost frame first."""
    found = tags.parts(tensor)
    if not found:
        return None
    storage = tags.storage_of(found[0])
    for frame in frames[:4]:
        for text, value in _expressions(frame):
            name = _match(text, value, tensor, storage)
            if name is not None:
                return name
    for frame in frames[:1]:
        for text, value in list(variables(frame).items()):
            if isinstance(value, torch.Tensor) and _shares(value, storage):
                return text
    return None


def _set(tensor: Any, frames: list[FrameType]) -> Place | None:
    """Where the outermost frame that has a variable of this tensor gave it its value, or handed it on without one."""
    found = tags.parts(tensor)
    storage = tags.storage_of(found[0]) if found else None
    place: Place | None = None
    for inner, frame in enumerate(frames if storage is not None else ()):
        held = [
            name
            for name, value in variables(frame).items()
            if isinstance(value, torch.Tensor) and _shares(value, storage)
        ]
        if not held:
            # Only an expression of this line has it: model(graph.x)
            return (frame.f_code, frame.f_lineno) if inner and place is None else place
        lines = [line for name in held for line in _stores(frame).get(name, ()) if line < frame.f_lineno]
        place = (frame.f_code, max(lines)) if lines else None
    return place


def _handed(name: str | None, frames: list[FrameType]) -> Place | None:
    """Where a parameter of the innermost function got its value: the line of the program that calls it."""
    code = frames[0].f_code if len(frames) > 1 else None
    if code is None or name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return None
    return frames[1].f_code, frames[1].f_lineno


def _set_on_self(name: str | None, frames: list[FrameType]) -> Place | None:
    """Where the class of the innermost method assigns an attribute of self that is no buffer and no parameter."""
    owner, _dot, attribute = (name or "").partition(".")
    if owner != "self" or not attribute.isidentifier() or not frames:
        return None
    tree, line = _tree(frames[0].f_code.co_filename), frames[0].f_code.co_firstlineno
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            lines = [
                each.lineno
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and ast.unparse(each) == name
            ]
            if lines:
                return frames[0].f_code, lines[0]
    return None


def _stores(frame: FrameType) -> dict[str, list[int]]:
    """The lines in which a function, or a file outside of functions, binds its names."""
    tree = _tree(frame.f_code.co_filename)
    first = frame.f_code.co_firstlineno
    for node in ast.walk(tree) if tree is not None else ():
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, functions) and first in (node.lineno, *(each.lineno for each in node.decorator_list)):
            return _bound_in(node)
    return _bound_in(tree) if tree is not None and frame.f_code.co_name == "<module>" else {}


def _bound_in(owner: ast.AST) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    waiting = list(ast.iter_child_nodes(owner))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(node.lineno)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def _match(text: str, value: Any, tensor: Any, storage: Any) -> str | None:
    if isinstance(value, torch.Tensor):
        return text if value is tensor or _shares(value, storage) else None
    if isinstance(value, torch.nn.Module):
        for prefix, module in value.named_modules():
            for table in (module._parameters, module._buffers):
                for name, item in table.items():
                    if item is not None and _shares(item, storage):
                        return ".".join(part for part in (text, prefix, name) if part)
    return None


def _shares(tensor: Any, storage: Any) -> bool:
    try:
        return any(tags.storage_of(part) is storage for part in tags.parts(tensor))
    except (NotImplementedError, RuntimeError, ValueError):
        return False


def _expressions(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Names, attributes and constant subscripts in the statement that a frame is running, with their values."""
    statement = statement_at(frame.f_code.co_filename, frame.f_lineno)
    if statement is None:
        return
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            value = _value(node, frame)
            if value is not _MISSING:
                yield ast.unparse(node), value


def _value(node: ast.AST, frame: FrameType) -> Any:
    if isinstance(node, ast.Name):
        return variables(frame).get(node.id, frame.f_globals.get(node.id, _MISSING))
    if isinstance(node, ast.Attribute):
        base = _value(node.value, frame)
        return _MISSING if base is _MISSING else _attribute(base, node.attr)
    if isinstance(node, ast.Subscript):
        base = _value(node.value, frame)
        index = node.slice
        key = index.value if isinstance(index, ast.Constant) else _value(index, frame)
        if type(base) in (dict, list, tuple) and type(key) in (int, str):
            try:
                return base[key]
            except (KeyError, IndexError, TypeError):
                return _MISSING
    return _MISSING


def _attribute(base: Any, name: str) -> Any:
    """An attribute without running anybody's code."""
    own = getattr(type(base), "__dict__", {}).get(name, _MISSING)
    if isinstance(own, property):
        return _MISSING
    try:
        tables = [object.__getattribute__(base, "__dict__")]
    except AttributeError:
        return _MISSING
    if isinstance(base, torch.nn.Module):
        tables += [tables[0].get(key, {}) for key in ("_parameters", "_buffers", "_modules")]
    for table in tables:
        if name in table:
            return table[name]
    return _MISSING


@lru_cache(maxsize=256)
def _tree(filename: str) -> ast.Module | None:
    lines = linecache.getlines(filename)
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


@lru_cache(maxsize=1024)
def statement_at(filename: str, line: int) -> ast.AST | None:
    """The innermost statement that spans a line; of a compound one only its header."""
    tree = _tree(filename)
    if tree is None:
        return None
    best: ast.stmt | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if best is None or node.lineno >= best.lineno:
            best = node
    if best is None or not hasattr(best, "body"):
        return best
    header = [value for key, value in ast.iter_fields(best) if key in ("test", "iter", "items", "subject")]
    flat = [item for value in header for item in (value if isinstance(value, list) else [value])]
    return ast.Module(body=[ast.Expr(item) for item in flat if isinstance(item, ast.expr)], type_ignores=[])


def _call_text(frame: FrameType) -> str | None:
    """The source line that a frame is running."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    return text or None

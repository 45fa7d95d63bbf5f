"""torchport.lock: stacks side by side, written as TOML and read back."""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from torchport.plan import Package, Stack
from torchport.text import _

T = TypeVar("T")

FILE = "torchport.lock"
SCHEMA = 1

_HEAD = """\
# Written by torchport stack; "torchport stack --check" tells what has drifted from it.
schema = {schema}
"""


class LockError(Exception):
    """A torchport.lock that cannot be read, or is of a newer torchport."""


def write(stacks: Sequence[Stack]) -> str:
    """The text of the file. Equal stacks give equal bytes, in whatever order they come."""
    parts = [_HEAD.format(schema=SCHEMA)]
    for stack in sorted(stacks, key=lambda each: each.name):
        parts.append("\n[[stack]]\n" + _table(stack))
        for package in sorted(stack.packages, key=lambda each: each.name):
            parts.append("\n[[stack.package]]\n" + _table(package))
    return "".join(parts)


def read(text: str, name: str = FILE) -> tuple[Stack, ...]:
    """The stacks of a file called ``name``. Raises LockError, which names the place."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LockError(f"{name}: {error}") from error
    schema = document.get("schema")
    if schema != SCHEMA:
        raise LockError(
            _("{name}: schema {seen!r}; this torchport reads {known}. Lock again with: torchport stack").format(
                name=name, seen=schema, known=SCHEMA
            )
        )
    try:
        return tuple(_stack(table) for table in document.get("stack", ()))
    except (KeyError, TypeError, AttributeError) as error:
        raise LockError(
            _("{name}: not as torchport writes it: {error}. Lock again with: torchport stack").format(
                name=name, error=error
            )
        ) from error


def together(old: Sequence[Stack], new: Stack) -> tuple[Stack, ...]:
    """``new`` beside those that are there, in place of the one for the same Python, platform and backend."""
    return (*(stack for stack in old if stack.name != new.name), new)


def _stack(table: dict[str, Any]) -> Stack:
    packages = tuple(_made(Package, each) for each in table.pop("package", ()))
    return _made(Stack, {**table, "packages": packages})


def _made(kind: type[T], table: dict[str, Any]) -> T:
    known = typing.get_type_hints(kind)
    values = {}
    for key, value in table.items():
        value = tuple(value) if isinstance(value, list) else value
        wanted = typing.get_origin(known[key]) or known[key]
        allowed = typing.get_args(known[key]) if wanted in (types.UnionType, typing.Union) else (wanted,)
        if not isinstance(value, allowed):
            raise TypeError(f"{key} = {value!r}")
        values[key] = value
    return kind(**values)


def _table(row: Stack | Package) -> str:
    lines = []
    for field in fields(row):
        value = getattr(row, field.name)
        if field.name == "packages" or value is None or value == field.default:
            continue
        lines.append(f"{field.name} = {_value(value)}\n")
    return "".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        if len(value) > 1:
            return "[\n" + "".join(f"    {_value(each)},\n" for each in value) + "]"
        return "[" + "".join(map(_value, value)) + "]"
    # A JSON text is a TOML text: both escape alike, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

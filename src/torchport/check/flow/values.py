"""What an expression may be, as far as devices go."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from torchport.check.source import Source

CPU, GPU = "cpu", "cuda"
Device = str | None  # None: not known


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a tensor was made. ``how``: "factory", "attribute", "batch", "weight", "made" (anything else)."""

    source: Source
    node: ast.AST
    how: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything; nothing is said about it."""


@dataclass(frozen=True, slots=True)
class Const:
    """A Python value that is known."""

    value: Any


@dataclass(frozen=True, slots=True)
class DeviceValue:
    """A torch.device, or a text that names one."""

    device: Device


@dataclass(frozen=True, slots=True)
class Tensor:
    """``numbers`` is True for a tensor without dimensions, None where that is not known; ``assumed`` one that a caller
    is taken to give on the GPU; ``follows`` a parameter or buffer, which its module takes along.
    """

    device: Device
    origin: Origin | None = None
    numbers: bool | None = False
    assumed: bool = False
    follows: bool = False
    dims: int | None = None

    def with_dims(self, dims: int | None) -> Tensor:
        """The same with another number of dimensions, None where that is not known."""
        return replace(self, dims=dims, numbers=None if dims is None else dims == 0, follows=False)

    def at(self, device: Device) -> Tensor:
        return replace(self, device=device)


@dataclass(frozen=True, slots=True)
class Tree:
    """What a loader or a file gives: tensors on one device, in a structure that is not known."""

    device: Device
    origin: Origin | None = None


@dataclass(slots=True)
class Module:
    """An instance of a module class: ``name`` of torch's own, ``owner`` of the project's. Modules change in place."""

    name: str = ""
    owner: Class | None = None
    device: Device = CPU
    node: ast.AST | None = None
    source: Source | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    items: list[Value] = field(default_factory=list)
    plain: list[tuple[str, Tensor]] = field(default_factory=list)  # weights of a loss
    scatters: bool = False  # moves its inputs itself
    contained: Origin | None = None  # in a list or a dict of a module, which moves none of them

    def move(self, device: Device) -> None:
        """``module.to(device)``: parameters, buffers and submodules; not tensors and containers that it merely has."""
        self.device = device
        self.plain = [(name, tensor.at(device)) for name, tensor in self.plain]
        for name, value in self.attributes.items():
            if isinstance(value, Module):
                value.move(device)
            elif isinstance(value, Tensor) and value.follows:
                self.attributes[name] = value.at(device)
        for index, item in enumerate(self.items):
            if isinstance(item, Module):
                item.move(device)
            elif isinstance(item, Tensor) and item.follows:
                self.items[index] = item.at(device)


@dataclass(slots=True)
class Object:
    """An instance of a class of the project that is no module."""

    owner: Class
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list or tuple: its items where they are known, else what each of them is."""

    items: tuple[Value, ...] | None = None
    element: Value = Unknown()

    def each(self) -> Value:
        if self.items is None:
            return self.element
        found: Value = self.items[0] if self.items else Unknown()
        for item in self.items[1:]:
            found = join(found, item)
        return found


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dictionary with known keys."""

    items: dict[Any, Value]


@dataclass(frozen=True, slots=True)
class Loader:
    """Something to iterate over whose items are batches on the host."""

    item: Value


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer; its state goes where its parameters are when it is loaded."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A torch.Generator; ``node`` is the call that made it."""

    device: Device
    origin: Origin


@dataclass(frozen=True, slots=True)
class Array:
    """A NumPy array."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the project."""

    source: Source
    node: ast.ClassDef

    def is_module(self) -> bool:
        return self.source.is_module_class(self.node)

    def fields(self) -> list[str]:
        """The fields of a dataclass or named tuple, in order."""
        return [
            statement.target.id
            for statement in self.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def is_record(self) -> bool:
        """Whether instances can be iterated over like a tuple."""
        return any(getattr(base, "id", getattr(base, "attr", "")) == "NamedTuple" for base in self.node.bases)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the project, with the object it is bound to and the names around it."""

    source: Source
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    bound: Value | None = None
    around: Any = None


Value: TypeAlias = (
    "Unknown | Const | DeviceValue | Tensor | Tree | Module | Object | Sequence | Mapping | Loader | Optimizer "
    "| Generator | Array | Class | Function"
)
UNKNOWN = Unknown()


def join(left: Value, right: Value) -> Value:
    """What is true of both."""
    if left is right or left == right:
        return left
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(
            left.device if left.device == right.device else None,
            left.origin or right.origin,
            left.numbers if left.numbers == right.numbers else None,
            left.assumed or right.assumed,
            dims=left.dims if left.dims == right.dims else None,
        )
    if isinstance(left, (Tensor, Tree)) and isinstance(right, (Tensor, Tree)):
        return Tree(left.device if left.device == right.device else None, left.origin)
    if isinstance(left, Module) and isinstance(right, Module):
        for wrapper, inner in ((left, right), (right, left)):
            if wrapper.scatters and wrapper.items and wrapper.items[0] is inner:
                return wrapper
        return UNKNOWN
    if isinstance(left, DeviceValue) and isinstance(right, DeviceValue):
        return DeviceValue(None)
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        if left.items is not None and right.items is not None and len(left.items) == len(right.items):
            return Sequence(tuple(join(a, b) for a, b in zip(left.items, right.items, strict=True)))
        if left.items == () or right.items == ():
            return right if left.items == () else left
        return Sequence(None, join(left.each(), right.each()))
    return UNKNOWN


def flat(values: list[Value]) -> Iterator[Value]:
    """Values, and those inside lists and tuples."""
    for value in values:
        if isinstance(value, Sequence):
            yield from flat(list(value.items) if value.items is not None else [value.element])
        else:
            yield value

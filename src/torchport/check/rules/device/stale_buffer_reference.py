"""Finds a buffer of a module that is also kept under another name, in a list say.

``.to(device)`` puts new tensors in the place of the buffers. What was kept besides is the old tensor, on the CPU.

Bad::

    import torch
    from torch import nn

    class Anchors(nn.Module):
        def __init__(self):
            super().__init__()
            self.levels = []
            for i in range(3):
                self.register_buffer(f"anchors_{i}", torch.ones(4))
                self.levels.append(getattr(self, f"anchors_{i}"))

Good::

    import torch
    from torch import nn

    class Anchors(nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(3):
                self.register_buffer(f"anchors_{i}", torch.ones(4))

        def forward(self, x):
            return [x * getattr(self, f"anchors_{i}") for i in range(3)]

Bad::

    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(4))
            self.factors = [self.scale, self.scale]

Good::

    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(4))
            self.half = self.scale / 2
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C126",
    "stale-buffer-reference",
    ERROR,
    mark("`{code}` is kept a second time: after `.to(device)` this one is still the old tensor on the CPU"),
    mark("Keep the buffer's name, and take the buffer from self where it is used"),
)


def look(source: Source) -> Iterator[Hit]:
    """``self.x = self.buffer``, ``self.x = [self.buffer]`` and ``self.x.append(self.buffer)`` in ``__init__``."""
    buffers: dict[ast.ClassDef, list[ast.expr]] = {}
    for call in source.calls(".register_buffer"):
        owner = source.method_class(call)
        if owner is not None and call.args and source.is_module_class(owner):
            buffers.setdefault(owner, []).append(call.args[0])
    for each, names in buffers.items():
        for kept in _kept(source, each):
            if _is_buffer(source, kept, names):
                yield Hit(kept, {"code": source.code(kept)})


def _kept(source: Source, owner: ast.AST) -> Iterator[ast.expr]:
    """What ``__init__`` stores on self, elements of lists and dicts one by one."""
    for node in source.nodes(ast.Assign):
        if _in_init(source, node, owner) and any(_on_self(each) for each in node.targets):
            match node.value:
                case ast.List(elts=given) | ast.Tuple(elts=given) | ast.Dict(values=given):
                    yield from given
                case _:
                    yield node.value
    for call in source.calls(".append"):
        if isinstance(call.func, ast.Attribute) and _on_self(call.func.value) and _in_init(source, call, owner):
            yield from call.args


def _in_init(source: Source, node: ast.AST, owner: ast.AST) -> bool:
    function = source.function(node)
    return function is not None and function.name == "__init__" and source.parent(function) is owner


def _on_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_buffer(source: Source, node: ast.expr, names: list[ast.expr]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return any(constant(each) == name for each in names)
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="self"), name]):
            return any(ast.dump(each) == ast.dump(name) for each in names)
    return False

"""Finds ``torch.FloatTensor(…)``, ``torch.Tensor(…)`` and the other constructors from before ``torch.tensor``.

They make their tensor on the CPU and take no ``device=`` for another one, and what a number in them means, a size or a
value, depends on its type: ``torch.Tensor(3)`` is three numbers that nobody has set.

Bad::

    import torch

    weight = torch.FloatTensor([0.5, 2.0])
    print(weight)

Good::

    import torch

    weight = torch.tensor([0.5, 2.0], dtype=torch.float32)
    print(weight)

Bad::

    import torch

    noise = torch.Tensor(16, 100).normal_()

Good::

    import torch
    from torch import nn

    noise = torch.randn(16, 100)
    weight = nn.Parameter(torch.Tensor(16, 100))  # moves with its module
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import add_argument, replace
from torchport.check.rule import CERTAIN, INFO, Change, Hit, Rule
from torchport.check.rules.kinds import LEGACY
from torchport.check.rules.layers import spelled
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C120",
    "legacy-tensor-constructor",
    INFO,
    mark("`{name}(…)` makes its tensor on the CPU and takes no other device"),
    mark("Use `torch.tensor(values, dtype=…, device=…)`, or `torch.empty(sizes, …)` where the arguments are sizes"),
    confidence=CERTAIN,
)

_DTYPES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
_SMALL = {"int16", "int8", "uint8", "float16"}  # may not hold what is given


def look(source: Source) -> Iterator[Hit]:
    """Calls of the old constructors; not those whose tensor goes into a parameter or a buffer at once."""
    # What is made then need not be on the CPU, as it is here.
    elsewhere = bool(source.calls("torch.set_default_device", "torch.set_default_tensor_type"))
    for call in source.calls(*sorted(LEGACY)):
        above = source.parent(call)
        if isinstance(above, ast.Call) and (
            source.name(above.func) == "torch.nn.Parameter"
            or (isinstance(above.func, ast.Attribute) and above.func.attr == "register_buffer")
        ):
            continue
        changes, safe = _repair(source, call)
        yield Hit(call, {"name": source.code(call.func)}, changes, safe and not elsewhere)


def _repair(source: Source, call: ast.Call) -> tuple[tuple[Change, ...], bool]:
    """Literal values, where nothing else changes, and two or more sizes."""
    torch = spelled(source, "torch")
    dtype = _DTYPES.get(source.name(call.func).split(".")[-1], "")
    if not torch or call.keywords or not call.args:
        return (), False
    given = (add_argument(source, call, f"dtype={torch}.{dtype}"),) if dtype else ()
    values = _numbers(call.args[0])
    if len(call.args) == 1 and values:
        floats = any(isinstance(each, float) for each in values)
        whole = not dtype.startswith(("int", "uint")) or not floats
        if dtype in _SMALL or dtype == "bool" or not whole or (not dtype and not floats):
            return (), False
        return (replace(source, call.func, f"{torch}.tensor"), *given), True
    if len(call.args) > 1 and not any(isinstance(each, ast.Starred) for each in call.args):
        return (replace(source, call.func, f"{torch}.empty"), *given), False
    return (), False


def _numbers(node: ast.expr) -> list[float]:
    """The numbers of a literal list, of lists also; none if anything else is in it."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return []
    found: list[float] = []
    for each in node.elts:
        if isinstance(each, (ast.List, ast.Tuple)):
            inner = _numbers(each)
            if not inner:
                return []
            found += inner
        else:
            number = constant(each.operand if isinstance(each, ast.UnaryOp) else each)
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                return []
            found.append(number)
    return found

"""Finds the number of a GPU that is tested for truth.

The first GPU has the number 0, and 0 is false: with ``--gpu 0`` the program stays on the CPU and says nothing.

Bad::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=None)
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    if args.gpu:
        model.cuda(args.gpu)

Good::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=None)
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    if args.gpu is not None:
        model.cuda(args.gpu)

Bad::

    import torch

    def pick(gpu_id: int) -> torch.device:
        return torch.device(f"cuda:{gpu_id}" if gpu_id else "cpu")

Good::

    import torch

    def pick(gpu_id: int) -> torch.device:
        return torch.device(f"cuda:{gpu_id}" if gpu_id >= 0 else "cpu")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Change, Hit, Rule
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C124",
    "device-from-truthy-gpu-id",
    WARNING,
    mark("`{name}` is the number of a GPU, and the first one, 0, counts as false here"),
    mark("Compare it: `{name} is not None`, or `{name} >= 0` where -1 means the CPU"),
)


def look(source: Source) -> Iterator[Hit]:
    """Conditions that are such a number, ``not`` of one, or one of several joined by ``and`` and ``or``."""
    numbers = _numbers(source)
    if not numbers:
        return
    branches: list[ast.If | ast.IfExp] = [*source.nodes(ast.If), *source.nodes(ast.IfExp)]
    tests = [node.test for node in branches]
    while tests:
        test = tests.pop(0)
        if isinstance(test, ast.BoolOp):
            tests += test.values
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            tests.append(test.operand)
        elif source.code(test) in numbers and not _is_compared(source, test):
            yield Hit(test, {"name": source.code(test)}, _repair(source, test))


def _numbers(source: Source) -> set[str]:
    """The names and attributes that are used as the number of a GPU, and are known to be numbers."""
    found = set()
    for call in source.calls(".cuda", "torch.cuda.set_device", "torch.cuda.device"):
        found |= {source.code(each) for each in call.args[:1] if isinstance(each, (ast.Name, ast.Attribute))}
    for node in source.nodes(ast.JoinedStr):
        if (
            len(node.values) == 2
            and constant(node.values[0]) == "cuda:"
            and isinstance(node.values[1], ast.FormattedValue)
        ):
            found.add(source.code(node.values[1].value))
    return {text for text in found if _is_number(source, text)}


def _is_number(source: Source, text: str) -> bool:
    """Whether an argument of the command line or a parameter is declared as an int."""
    name = text.split(".")[-1]
    for call in source.calls(".add_argument"):
        flags = [str(constant(each)).lstrip("-").replace("-", "_") for each in call.args]
        if name in flags and "." in text:
            return any(each.arg == "type" and source.code(each.value) == "int" for each in call.keywords)
    declared = [node.annotation for node in source.nodes(ast.arg) if node.arg == text]
    return bool(declared) and all(each is not None and source.code(each).startswith("int") for each in declared)


def _is_compared(source: Source, test: ast.expr) -> bool:
    """Whether the same condition compares the number as well: then nothing is known to be wrong."""
    above = source.parent(test)
    values = above.values if isinstance(above, ast.BoolOp) else []
    return any(isinstance(each, ast.Compare) and source.code(test) in source.code(each) for each in values)


def _repair(source: Source, test: ast.expr) -> tuple[Change, ...]:
    end = source.span(test)[1]
    above = source.parent(test)
    return ((end, end, " is not None"),) if isinstance(above, ast.If) and above.test is test else ()

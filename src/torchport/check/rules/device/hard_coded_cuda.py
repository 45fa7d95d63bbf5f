"""Finds tensors and modules that are sent to CUDA although nothing has asked whether there is a GPU.

Such a program ends at once on a machine without one, in a test on a CPU for instance, and its tensors go to the
current GPU even where the model is on another.

Bad::

    import torch
    from torch import nn

    model = nn.Linear(4, 2).cuda()

Good::

    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    model = nn.Linear(4, 2).to(device)

Bad::

    import torch

    device = torch.device("cuda")
    x = torch.zeros(3, device="cuda")
    y = x.type(torch.cuda.LongTensor)

Good::

    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.zeros(3)
    if torch.cuda.is_available():
        x = x.cuda()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import LIKELY, WARNING, Change, Hit, Rule
from torchport.check.rules.chosen import device_for
from torchport.check.rules.layers import spelled
from torchport.check.rules.moves import is_cuda_type, is_for_gpus_alone, is_guarded
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C122",
    "hard-coded-cuda",
    WARNING,
    mark("`{code}` fails on a machine without a GPU"),
    mark(
        'Choose the device once, `torch.device("cuda" if torch.cuda.is_available() else "cpu")`, and use `.to(device)`'
    ),
    confidence=LIKELY,
)


def look(source: Source) -> Iterator[Hit]:
    """``.cuda()``, ``.to("cuda")``, ``device="cuda"`` and their like without a test around them or ahead of them."""
    if is_for_gpus_alone(source):
        return
    for call in source.calls(".cuda", ".to", ".type"):
        if not isinstance(call.func, ast.Attribute) or source.name(call.func) or _is_super(call.func.value):
            continue
        method, first = call.func.attr, argument(call, "device", 0)
        asks = method == "cuda" and (not call.args or isinstance(constant(first), int))
        asks = asks or (method == "to" and constant(first) == "cuda")
        asks = asks or (method == "type" and first is not None and is_cuda_type(_type(source, first)))
        if asks and not is_guarded(source, call):
            yield Hit(call, {"code": source.code(call)}, _repair(source, call))
    for keyword in source.nodes(ast.keyword):
        above = source.parent(keyword)
        if keyword.arg != "device" or constant(keyword.value) != "cuda" or not isinstance(above, ast.Call):
            continue
        if source.name(above.func).startswith("torch.") and not is_guarded(source, above):
            name, chosen = device_for(source, keyword.value)
            changes = (replace(source, keyword.value, name), *chosen) if name else ()
            yield Hit(keyword, {"code": source.code(keyword)}, changes)
    for call in source.calls("torch.device"):
        if constant(argument(call, "device", 0)) != "cuda" or len(call.args) != 1:
            continue
        named_only = isinstance(source.parent(call), (ast.Compare, ast.arguments))  # asks, or can be given otherwise
        if not named_only and not is_guarded(source, call):
            torch = spelled(source, "torch")
            text = f'"cuda" if {torch}.cuda.is_available() else "cpu"'
            yield Hit(call, {"code": source.code(call)}, (replace(source, call.args[0], text),) if torch else ())


def _type(source: Source, node: ast.expr) -> str:
    text = constant(node)
    return text if isinstance(text, str) else source.name(node)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _repair(source: Source, call: ast.Call) -> tuple[Change, ...]:
    """``.to(device)`` with the device that the file has, or with one that is chosen behind its imports."""
    assert isinstance(call.func, ast.Attribute)
    name, chosen = device_for(source, call)
    if not name:
        return ()
    if call.func.attr == "to" and call.args:
        return replace(source, call.args[0], name), *chosen
    if call.func.attr != "cuda" or any(keyword.arg != "non_blocking" for keyword in call.keywords):
        return ()
    end = source.span(call.func.value)[1]
    dot = source.text.find(".", end)
    if source.text[end:dot].strip(") \t\r\n\\"):
        return ()  # a comment stands there
    rest = "".join(f", {source.code(keyword)}" for keyword in call.keywords)
    return (dot, source.span(call)[1], f".to({name}{rest})"), *chosen

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

from torchport.check.changes import after, replace
from torchport.check.rule import LIKELY, WARNING, Change, Hit, Rule
from torchport.check.rules.layers import spelled
from torchport.check.rules.moves import chosen_device, is_cuda_type, is_guarded
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
    if _needs_a_gpu(source):
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
            name, chosen = _device(source, keyword.value)
            changes = (replace(source, keyword.value, name), *chosen) if name else ()
            yield Hit(keyword, {"code": source.code(keyword)}, changes)
    for call in source.calls("torch.device"):
        if constant(argument(call, "device", 0)) == "cuda" and len(call.args) == 1 and not is_guarded(source, call):
            torch = spelled(source, "torch")
            text = f'"cuda" if {torch}.cuda.is_available() else "cpu"'
            yield Hit(call, {"code": source.code(call)}, (replace(source, call.args[0], text),) if torch else ())


def _type(source: Source, node: ast.expr) -> str:
    text = constant(node)
    return text if isinstance(text, str) else source.name(node)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _needs_a_gpu(source: Source) -> bool:
    """Whether the file is for GPUs alone: kernels, or processes that speak NCCL."""
    kernels = ("triton", "numba.cuda", "cupy", "pycuda", "torch.utils.cpp_extension")
    imports = [way.imported for ways in source.scope.bindings.values() for way in ways if way.imported]
    if any(name == each or name.startswith(f"{each}.") for name in imports for each in kernels):
        return True
    starts = source.calls("torch.distributed.init_process_group")
    return any(constant(argument(call, "backend", 0)) == "nccl" for call in starts)


def _repair(source: Source, call: ast.Call) -> tuple[Change, ...]:
    """``.to(device)`` with the device that the file has, or with one that is chosen behind its imports."""
    assert isinstance(call.func, ast.Attribute)
    name, chosen = _device(source, call)
    if not name:
        return ()
    if call.func.attr == "to" and call.args:
        return replace(source, call.args[0], name), *chosen
    if call.func.attr != "cuda" or any(keyword.arg != "non_blocking" for keyword in call.keywords):
        return ()
    dot = source.text.find(".", source.span(call.func.value)[1])
    rest = "".join(f", {source.code(keyword)}" for keyword in call.keywords)
    return (dot, source.span(call)[1], f".to({name}{rest})"), *chosen


def _device(source: Source, node: ast.AST) -> tuple[str, tuple[Change, ...]]:
    """The name of a device for a node, and what has to be written for it."""
    name = chosen_device(source, node)
    taken = any(each.id == "device" for each in source.nodes(ast.Name))
    if name or taken or any(each.arg == "device" for each in source.nodes(ast.arg)):
        return name, ()
    chosen = _choose(source, node)
    return ("device", chosen) if chosen else ("", ())


def _choose(source: Source, node: ast.AST) -> tuple[Change, ...]:
    torch, last = "", None
    for statement in source.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            last = statement
        elif torch or source.span(statement)[1] >= source.span(node)[0]:
            break
        torch = torch or spelled(source, "torch") if last is statement and _imports_torch(last) else torch
    if last is None or not torch or source.span(last)[0] > source.span(node)[0]:
        return ()
    text = f'device = {torch}.device("cuda" if {torch}.cuda.is_available() else "cpu")'
    return (after(source, last, "", text),)


def _imports_torch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and any(alias.name == "torch" for alias in statement.names)

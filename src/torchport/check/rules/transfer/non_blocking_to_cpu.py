"""Finds ``.to("cpu", non_blocking=True)`` with nothing that waits for the copy.

It comes back before the copy is there: what reads the tensor next, on the CPU, may read memory that is not yet
written. No error says so.

Bad::

    import torch

    def fetch(x):
        host = x.to("cpu", non_blocking=True)
        return host.numpy()

Good::

    import torch

    def fetch(x):
        host = x.to("cpu")
        return host.numpy()

Bad::

    import torch

    cpu = torch.device("cpu")
    total = torch.ones(3).to(cpu, torch.float32, non_blocking=True).sum()

Good::

    import torch

    def fetch(x):
        host = x.to("cpu", non_blocking=True)
        torch.cuda.synchronize()
        return host.numpy()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.changes import remove_argument
from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.moves import is_cpu
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C215",
    "non-blocking-to-cpu",
    ERROR,
    mark("`{code}` comes back before the copy is done: the CPU may read what is not written yet"),
    mark("Leave out `non_blocking=True`, or call `torch.cuda.synchronize()` before the tensor is read"),
)

_WAITING = (".synchronize", ".wait_event", ".wait_stream", "torch.cuda.synchronize")


def look(source: Source) -> Iterator[Hit]:
    """Copies to what is certainly the CPU, read in the same function, in a file that waits for nothing."""
    if source.calls(*_WAITING):
        return
    for call in source.calls(".to"):
        flag = next((each for each in call.keywords if each.arg == "non_blocking"), None)
        device = argument(call, "device", 0)
        if flag is None or constant(flag.value) is not True or device is None or not is_cpu(source, device):
            continue
        if not _is_read(source, call):
            continue
        yield Hit(call, {"code": source.code(call)}, (remove_argument(source, call, flag),), safe=True)


def _is_read(source: Source, call: ast.Call) -> bool:
    """Whether a method of the copy is called, or the copy is given to NumPy or to ``print``; not that it is kept."""
    above = source.parent(call)
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
        end = source.span(above)[1]
        return any(
            node.id == name and source.span(node)[0] > end and _reads(source, node)
            for node in source.nodes(ast.Name)
            if source.function(node) is source.function(call)
        )
    return _reads(source, call)


def _reads(source: Source, node: ast.expr) -> bool:
    above = source.parent(node)
    if isinstance(above, ast.Attribute):
        return isinstance(source.parent(above), ast.Call) and above.attr not in ("to", "cuda", "record_stream", "size")
    if not isinstance(above, ast.Call):
        return False
    name = source.name(above.func)
    return name.startswith("numpy.") or name == "torch.save" or source.code(above.func) in ("print", "float", "int")

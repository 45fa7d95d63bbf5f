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

_WAITING = (".synchronize", ".wait", ".wait_event", ".wait_stream", ".query")


def look(source: Source) -> Iterator[Hit]:
    """Copies to what is certainly the CPU, in a function that waits for nothing."""
    for call in source.calls(".to"):
        flag = next((each for each in call.keywords if each.arg == "non_blocking"), None)
        device = argument(call, "device", 0)
        if flag is None or constant(flag.value) is not True or device is None or not is_cpu(source, device):
            continue
        function = source.function(call)
        if not any(source.function(each) is function for each in source.calls(*_WAITING)):
            words = {"code": source.code(call)}
            yield Hit(call, words, (remove_argument(source, call, flag),), safe=isinstance(call.func, ast.Attribute))

"""Finds times that are taken around work of the GPU without waiting for it.

A call of a model comes back as soon as the GPU has its orders. The clock then shows how long giving orders takes.

Bad::

    import time

    import torch

    model = torch.nn.Linear(64, 64).to("cuda")
    x = torch.randn(8, 64, device="cuda")
    start = time.time()
    y = model(x)
    print(time.time() - start)

Good::

    import time

    import torch

    model = torch.nn.Linear(64, 64).to("cuda")
    x = torch.randn(8, 64, device="cuda")
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.time()
    y = model(x)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print(time.time() - start)

Bad::

    from time import perf_counter

    def step(model, x, device):
        start = perf_counter()
        loss = model(x.to("cuda")).sum()
        loss.backward()
        end = perf_counter()
        return end - start

Good::

    from time import perf_counter

    def step(model, x, device):
        start = perf_counter()
        loss = model(x.to("cuda")).sum()
        loss.backward()
        print(loss.item())
        end = perf_counter()
        return end - start
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import before
from torchport.check.rule import LIKELY, WARNING, Change, Hit, Rule
from torchport.check.rules.kinds import is_module
from torchport.check.rules.layers import spelled
from torchport.check.rules.steps import is_batch_loop
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C220",
    "timing-without-synchronize",
    WARNING,
    mark("`{code}` is read while the GPU is still at work: the time is too short"),
    mark("Call `torch.cuda.synchronize()` before each reading of the clock"),
    confidence=LIKELY,
)

_CLOCKS = (
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.time_ns",
    "time.perf_counter_ns",
    "timeit.default_timer",
)
# What a module is called where the file does not show what it is.
_MODULE = re.compile(r"model|net|criterion|loss|encoder|decoder|generator|discriminator", re.IGNORECASE)
_WAITING = frozenset(("item", "tolist", "cpu", "numpy", "synchronize", "print", "all_reduce", "barrier"))


def look(source: Source) -> Iterator[Hit]:
    """Two readings in one block, work of a model between them, and nothing that waits."""
    if "cuda" not in source.text:
        return
    for end in source.calls(*_CLOCKS):
        stop = source.statement(end)
        block = getattr(source.parent(stop), "body", [])
        index = next((i for i, each in enumerate(block) if each is stop), 0) if isinstance(block, list) else 0
        for start in range(index - 1, -1, -1):
            if _reads_clock(source, block[start]):
                between = block[start + 1 : index]
                if _is_work(source, between) and not _waits(source, [*between, stop], end):
                    changes = _repair(source, block[start], stop)
                    yield Hit(end, {"code": source.code(end)}, changes, safe=True)
                break


def _reads_clock(source: Source, statement: ast.stmt) -> bool:
    """``start = time.time()``."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and source.name(value.func) in _CLOCKS


def _is_work(source: Source, block: list[ast.stmt]) -> bool:
    """A module that is called, or ``.backward()``; behind a loop over all batches the rest does not matter."""
    for statement in block:
        for node in ast.walk(statement):
            if is_batch_loop(source, node) or isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
                return False
    calls = [node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(_attribute(call) == "backward" or is_module(source, call.func) for call in calls)


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _waits(source: Source, block: list[ast.stmt], end: ast.Call) -> bool:
    """Whether something in the block waits for the GPU, or calls what the project has written, which may."""
    limit = source.span(end)[0]
    for statement in block:
        for node in ast.walk(statement):
            if not isinstance(node, ast.Call) or source.span(node)[0] >= limit:
                continue
            if _attribute(node) in _WAITING or (not _is_plain(source, node) and statement is not block[-1]):
                return True
    return False


def _is_plain(source: Source, call: ast.Call) -> bool:
    """A function of torch, a module by what it is or is called, or a method of an object that is not self."""
    if source.name(call.func).startswith("torch.") or is_module(source, call.func):
        return True
    match call.func:
        case ast.Name(id=name):
            return name in ("range", "len", "enumerate", "zip") or _MODULE.search(name) is not None
        case ast.Attribute(value=value, attr=method):
            root: ast.expr = value
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            own = isinstance(root, ast.Name) and root.id == "self"
            return not own or _MODULE.search(method) is not None or method in ("backward", "step", "zero_grad")
    return False


def _repair(source: Source, start: ast.stmt, stop: ast.stmt) -> tuple[Change, ...]:
    torch = spelled(source, "torch")
    alone = all(source.indent(each) or source.position(source.span(each)[0])[1] == 1 for each in (start, stop))
    if not torch or not alone:
        return ()
    lines = (f"if {torch}.cuda.is_available():", f"    {torch}.cuda.synchronize()")
    return before(source, start, *lines), before(source, stop, *lines)

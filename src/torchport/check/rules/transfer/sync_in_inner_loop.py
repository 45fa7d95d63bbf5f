"""Finds ``.item()`` and ``.cpu()`` in a loop inside the step of a training.

Each of them waits for the GPU: once for every sample of the batch, and not once for the batch.

Bad::

    def train(model, loader, optimizer, criterion, counts):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            for guess in out.argmax(1):
                counts[guess.item()] += 1

Good::

    def train(model, loader, optimizer, criterion, counts):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            for guess in out.argmax(1).tolist():
                counts[guess] += 1

Bad::

    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            out = model(x)
            criterion(out, y).backward()
            optimizer.step()
            right = [out[i].argmax().item() for i in range(len(y))]

Good::

    def train(model, loader, optimizer, criterion):
        for x, y in loader:
            out = model(x)
            criterion(out, y).backward()
            optimizer.step()
            right = [number for number in out.argmax(1).cpu()]
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.rules.steps import every_round, is_batch_loop
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C213",
    "sync-in-inner-loop",
    WARNING,
    mark("`{code}` waits for the GPU once for each round of this inner loop"),
    mark("Fetch the whole tensor once in front of the loop: `.tolist()` or `.cpu()`"),
)

_FETCHED = ("cpu", "numpy", "tolist")
_Inner = ast.For | ast.While | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp


def look(source: Source) -> Iterator[Hit]:
    """Such calls in a loop or comprehension that stands in a loop with ``.backward()``."""
    steps = {loop for call in source.calls(".backward") for loop in source.loops(call)[:1]}
    for call in source.calls(".item", ".cpu") if steps else ():
        inner = source.enclosing(call, *_Inner.__args__, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        if not isinstance(inner, _Inner) or inner in steps or call.args:
            continue
        step = next((loop for loop in source.loops(inner) if loop in steps), None)
        if step is None or not every_round(source, step, call) or _is_other(source, inner):
            continue
        if not _is_fetched(source, call, inner):
            yield Hit(call, {"code": source.code(call)})


def _is_other(source: Source, inner: _Inner) -> bool:
    """A loop over batches of its own, the steps of an environment, or the parameters of a model."""
    if is_batch_loop(source, inner):
        return True
    heads = [inner.iter] if isinstance(inner, ast.For) else []
    heads += [inner.test] if isinstance(inner, ast.While) else [each.iter for each in getattr(inner, "generators", ())]
    if any(word in source.code(head) for head in heads for word in ("loader", "parameters()", ".cpu()", ".numpy()")):
        return True
    start, end = source.span(inner)
    return any(start <= source.span(call)[0] < end for call in source.calls(".step", ".reset"))


def _is_fetched(source: Source, call: ast.Call, inner: _Inner) -> bool:
    """Whether what the call is made on was fetched before."""
    node: ast.AST = call.func
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute) and node.attr in _FETCHED and node is not call.func:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return True
    return any(
        isinstance(part, ast.Attribute) and part.attr in _FETCHED
        for value in source.values(node)
        for part in ast.walk(value)
    )

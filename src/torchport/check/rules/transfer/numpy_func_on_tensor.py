"""Finds functions of NumPy and matplotlib that are given what a model puts out.

NumPy fetches the tensor by itself, and cannot: ``can't convert cuda:0 device type tensor to numpy``, and on the CPU
not where it requires a gradient.

Bad::

    import numpy as np
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    out = model(torch.randn(8, 4))
    print(np.argmax(out, axis=1))

Good::

    import numpy as np
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    out = model(torch.randn(8, 4))
    print(np.argmax(out.detach().cpu().numpy(), axis=1))

Bad::

    import numpy as np
    from torch import nn

    def train(model, loader, optimizer):
        criterion = nn.MSELoss()
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss)
        print(np.mean(losses))

Good::

    import numpy as np
    from torch import nn

    def train(model, loader, optimizer):
        criterion = nn.MSELoss()
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(np.mean(losses))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Hit, Rule
from torchport.check.rules.layers import run_by_forward
from torchport.check.rules.outputs import is_list_of_outputs, is_output
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C210",
    "numpy-func-on-tensor",
    ERROR,
    mark("`{function}` cannot read `{code}` from a GPU"),
    mark("Fetch it first, `.detach().cpu().numpy()`, or use the function of torch; a list: `torch.stack(…)`"),
)

# Of these the first argument is data.
_PLOTS = frozenset(f"matplotlib.pyplot.{name}" for name in ("plot", "scatter", "imshow", "hist", "bar"))
_NO_DATA = (
    "numpy.random.",
    "numpy.ndarray",
    "numpy.shape",
    "numpy.ndim",
    "numpy.size",
    "numpy.savez",
    "numpy.testing.",
)


def look(source: Source) -> Iterator[Hit]:
    """Their calls on an output of a module, or on a list of such outputs."""
    if not any(ways[0].imported.startswith(("numpy", "matplotlib")) for ways in source.scope.bindings.values()):
        return
    for call in source.nodes(ast.Call):
        name = source.name(call.func) if call.args else ""
        if name not in _PLOTS and (not name.startswith("numpy.") or name.startswith(_NO_DATA)):
            continue
        for given in call.args[:2]:
            words = {"function": source.code(call.func), "code": source.code(given)}
            if is_list_of_outputs(source, given) or _is_list_in_forward(source, given, call):
                yield Hit(call, words)
                break
            if is_output(source, given):
                end = source.span(given)[1]
                simple = isinstance(given, (ast.Name, ast.Attribute, ast.Call))
                yield Hit(call, words, ((end, end, ".detach().cpu().numpy()"),) if simple else ())
                break


def _is_list_in_forward(source: Source, node: ast.expr, call: ast.Call) -> bool:
    """Whether a forward fills a list with what functions of torch give back."""
    values = source.values(node) if isinstance(node, ast.Name) else []
    if len(values) != 1 or not isinstance(values[0], ast.List) or source.function(call) not in run_by_forward(source):
        return False
    for append in source.calls(".append"):
        target = append.func.value if isinstance(append.func, ast.Attribute) else None
        if isinstance(target, ast.Name) and source.values(target) == values and append.args:
            made = [each for each in source.values(append.args[0]) if isinstance(each, ast.Call)]
            return any(source.name(each.func).startswith("torch.") for each in made)
    return False

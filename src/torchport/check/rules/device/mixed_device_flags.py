"""Finds a model that goes to the GPU by one switch, and its data by another.

With one of them on and the other off the model is on the GPU and what it is called with is not.

Bad::

    import argparse

    import torch
    from torch import nn

    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    use_cuda = torch.cuda.is_available()

    model = nn.Linear(4, 2)
    if use_cuda:
        model = model.cuda()
    x = torch.randn(8, 4)
    if args.cuda:
        x = x.cuda()
    print(model(x))

Good::

    import argparse

    import torch
    from torch import nn

    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    use_cuda = args.cuda and torch.cuda.is_available()

    model = nn.Linear(4, 2)
    if use_cuda:
        model = model.cuda()
    x = torch.randn(8, 4)
    if args.cuda:
        x = x.cuda()
    print(model(x))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import POSSIBLE, WARNING, Hit, Rule
from torchport.check.rules.kinds import is_module, is_tensor
from torchport.check.rules.moves import asks_for_cuda, moves
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C125",
    "mixed-device-flags",
    WARNING,
    mark("`{data}` decides where the data go, and `{model}` where the model goes"),
    mark("Choose one `device` at the beginning, and move both with `.to(device)`"),
    confidence=POSSIBLE,
)


def look(source: Source) -> Iterator[Hit]:
    """The first move of a tensor under a condition that shares no word with that of any module."""
    modules: list[ast.expr] = []
    tensors: list[ast.expr] = []
    for call in source.calls(".cuda", ".to"):
        test = _condition(source, call) if moves(source, call) else None
        if test is None or not isinstance(call.func, ast.Attribute):
            continue
        if is_module(source, call.func.value):
            modules.append(test)
        elif is_tensor(source, call.func.value):
            tensors.append(test)
    words = set().union(*(_words(source, test) for test in modules))
    for test in tensors if modules else ():
        if not _words(source, test) & words:
            seen = ((source.span(modules[0])[0], mark("this one decides for the model")),)
            yield Hit(test, {"data": source.code(test), "model": source.code(modules[0])}, seen=seen)
            return


def _condition(source: Source, call: ast.Call) -> ast.expr | None:
    """The nearest condition about GPUs that lets a move happen, if it is a name, an attribute or ``is_available()``."""
    child: ast.AST = call
    for above in source.ancestors(call):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(above, (ast.If, ast.IfExp)) and asks_for_cuda(source, above.test):
            here = above.body if isinstance(above.body, list) else [above.body]
            return above.test if _is_known(source, above.test) and any(child is each for each in here) else None
        child = above
    return None


def _is_known(source: Source, test: ast.expr) -> bool:
    """A switch whose origin the file shows: not an argument of the function, which may come from any of them."""
    if isinstance(test, ast.Attribute) and not source.code(test).startswith("self."):
        return True
    return isinstance(test, ast.Call) or (isinstance(test, (ast.Name, ast.Attribute)) and bool(source.values(test)))


def _words(source: Source, test: ast.expr) -> set[str]:
    """All that an answer is made of, in names and attributes, through the names that stand for it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [test]
    while waiting:
        node = waiting.pop()
        for part in ast.walk(node):
            if isinstance(part, (ast.Name, ast.Attribute)):
                text = source.code(part)
                if text not in found and text not in ("torch", "torch.cuda", "args", "opt", "self"):
                    found.add(text)
                    waiting += [value for value in source.values(part) if value is not part]
    return found

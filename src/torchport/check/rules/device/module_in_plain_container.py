"""Finds layers that a module keeps in a Python list or dict.

A module does not see them there: ``.to(device)`` leaves them on the CPU, the optimizer gets none of their
parameters, and the checkpoint does not hold them.

Bad::

    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(8, 8) for _ in range(3)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

Good::

    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

Bad::

    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = []
            for _ in range(depth):
                self.layers.append(nn.Linear(8, 8))

Good::

    from torch import nn

    class Net(nn.Module):
        def __init__(self, depth):
            super().__init__()
            layers = []
            for _ in range(depth):
                layers.append(nn.Linear(8, 8))
            self.layers = nn.Sequential(*layers)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, Change, Hit, Rule
from torchport.check.rules.containers import contents, is_registered, methods_used
from torchport.check.rules.layers import has_weights, spelled
from torchport.check.source import Source, constant
from torchport.text import mark

META = Rule(
    "C127",
    "module-in-plain-container",
    ERROR,
    mark("`self.{name}` is a plain {kind}: the layers in it are neither moved to the GPU nor trained"),
    mark("Keep them in `nn.{holder}`"),
)

_LIST_CAN = {"append", "extend", "insert", "pop", "index"} - {"index"}
_DICT_CAN = {"items", "keys", "values", "pop", "update", "clear"}


def look(source: Source) -> Iterator[Hit]:
    """Attributes of self in a module's class whose list or dict holds a layer with weights."""
    for owner in source.nodes(ast.ClassDef):
        if not source.is_module_class(owner):
            continue
        for name, given in source.attributes(owner).items():
            for value in given:
                plain = _plain(source, value)
                if plain is None or is_registered(source, owner, name, value):
                    continue
                if any(has_weights(source, each) for each in contents(source, owner, name, value, plain)):
                    kind, holder = ("dict", "ModuleDict") if _is_dict(plain) else ("list", "ModuleList")
                    words = {"name": name, "kind": kind, "holder": holder}
                    changes = _repair(source, owner, name, plain, holder) if plain is value else ()
                    yield Hit(source.statement(value), words, changes)
                    break


def _plain(source: Source, value: ast.expr) -> ast.expr | None:
    """The list or dict that an attribute is given, itself or by a name that stands for nothing else."""
    found = source.values(value)
    return (
        found[0] if len(found) == 1 and isinstance(found[0], (ast.List, ast.ListComp, ast.Dict, ast.DictComp)) else None
    )


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, (ast.Dict, ast.DictComp))


def _repair(source: Source, owner: ast.ClassDef, name: str, plain: ast.expr, holder: str) -> tuple[Change, ...]:
    """The same literal in a ModuleList or ModuleDict, if that can do all that the class does with it."""
    text = spelled(source, f"torch.nn.{holder}")
    used = methods_used(source, owner, name)
    if not text or len(source.attributes(owner)[name]) > 1 or not used <= (_DICT_CAN if _is_dict(plain) else _LIST_CAN):
        return ()
    if isinstance(plain, ast.Dict) and not all(isinstance(constant(key), str) for key in plain.keys):
        return ()
    if isinstance(plain, ast.DictComp):
        return ()
    start, end = source.span(plain)
    if isinstance(plain, ast.List) and not plain.elts:
        return ((start, end, f"{text}()"),)
    return ((start, start, f"{text}("), (end, end, ")"))

"""Finds the old order of ``add_``, ``addcmul_`` and ``addcdiv_``, with the factor first.

Torch warns about it: the factor is a keyword, ``alpha`` or ``value``.

Bad::

    import torch

    weight, gradient = torch.ones(3), torch.ones(3)
    weight.add_(-0.1, gradient)
    weight.addcmul_(0.9, gradient, gradient)

Good::

    import torch

    weight, gradient = torch.ones(3), torch.ones(3)
    weight.add_(gradient, alpha=-0.1)
    weight.addcmul_(gradient, gradient, value=0.9)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import INFO, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C950",
    "scalar-first-overload",
    INFO,
    mark("`{method}` with the factor first is deprecated since torch 1.5"),
    mark("Put it last, by name: `{instead}`"),
    since=(1, 5),
)
_FORMS = {"add_": (2, "alpha"), "sub_": (2, "alpha"), "addcmul_": (3, "value"), "addcdiv_": (3, "value")}


def look(source: Source) -> Iterator[Hit]:
    """The methods in place: no other library has these with so many arguments."""
    for method, (count, name) in _FORMS.items():
        for call in source.calls(f".{method}"):
            plain = len(call.args) == count and not call.keywords
            if plain and not any(isinstance(each, ast.Starred) for each in call.args) and not source.name(call.func):
                first, *rest = (source.code(each) for each in call.args)
                instead = f"{', '.join(rest)}, {name}={first}"
                inner = (source.text.index("(", source.span(call.func)[1]) + 1, source.span(call)[1] - 1)
                fits = "#" not in source.text[inner[0] : inner[1]]
                words = {"method": method, "instead": f"{method}({instead})"}
                yield Hit(call, words, ((*inner, instead),) if fits else (), safe=True)

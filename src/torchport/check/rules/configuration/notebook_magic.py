"""Finds what only a notebook understands, in a script.

``get_ipython`` has no meaning there: the script ends with a NameError.

Bad::

    import torch

    get_ipython().run_line_magic("matplotlib", "inline")

Good::

    import torch

    if "get_ipython" in globals():
        get_ipython().run_line_magic("matplotlib", "inline")
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, ERROR, Hit, Rule
from torchport.check.source import Source
from torchport.text import mark

META = Rule(
    "C909",
    "notebook-magic",
    ERROR,
    mark("`get_ipython` exists in notebooks alone: a script ends here with a NameError"),
    mark("Leave it out; what it installs belongs into the requirements"),
    confidence=CERTAIN,
)


def look(source: Source) -> Iterator[Hit]:
    """Calls of a name that nothing binds, not behind a test of it or in a ``try``."""
    for call in source.nodes(ast.Call):
        name = call.func
        if (
            not isinstance(name, ast.Name)
            or name.id != "get_ipython"
            or source.scope_at(name).find(name.id) is not None
        ):
            continue
        if source.enclosing(call, ast.Try) is None and not _is_tested(source, call):
            yield Hit(call)


def _is_tested(source: Source, call: ast.Call) -> bool:
    return any(
        isinstance(above, (ast.If, ast.IfExp)) and "ipython" in source.code(above.test).lower()
        for above in source.ancestors(call)
    )

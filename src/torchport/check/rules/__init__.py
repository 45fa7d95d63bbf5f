"""The rules: one module each, with ``META``, ``look`` and a docstring that is documentation and test alike.

In the order in which users see them; a test fails for a module that is not listed.
"""

from __future__ import annotations

import importlib
from functools import cache

from torchport.check.rule import LoadedRule

GROUPS: dict[str, tuple[str, ...]] = {
    "device": ("discarded_to",),
    "transfer": (),
    "distributed": (),
    "precision": (),
    "data": (),
    "memory": (),
    "reproducibility": (),
    "logging": (),
    "checkpoint": (),
    "security": (),
    "configuration": (),
    "api": (),
}


@cache
def rules() -> tuple[LoadedRule, ...]:
    """All rules, loaded when a check begins."""
    found = []
    for group, names in GROUPS.items():
        for name in names:
            module = importlib.import_module(f"torchport.check.rules.{group}.{name}")
            files = frozenset(getattr(module, "FILES", ("python",)))
            found.append(LoadedRule(module.META, module.look, module.__doc__ or "", files))
    return tuple(found)

"""Recipes: improvements that the user asks for, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Sequence

from torchport.migrate.recipe import Recipe
from torchport.migrate.recipes import backends
from torchport.text import _

RECIPES: tuple[Recipe, ...] = (backends.META,)


def chosen(names: Sequence[str]) -> list[Recipe]:
    """The recipes of these names, in their own order. Raises ValueError for one that there is not."""
    known = [each.name for each in RECIPES]
    for name in names:
        if name not in known:
            raise ValueError(
                _("{name}: there is no such recipe; there are {known}").format(name=name, known=", ".join(known))
            )
    return [each for each in RECIPES if each.name in names]

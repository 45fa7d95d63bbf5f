"""Recipes on one file: what each docstring calls bad becomes what it calls good, and that asks for nothing more."""

import re
import textwrap

import pytest

from torchport.migrate import recipes
from torchport.migrate.recipe import Unsuited
from torchport.migrate.tree import copy

NAMES = [each.name for each in recipes.RECIPES]


def examples(name, kind):
    """The indented blocks of a recipe that follow ``Bad::`` or ``Good::``."""
    text = getattr(recipes, name).__doc__
    found = re.findall(rf"^{kind}::\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in found]


def tree_of(folder, text):
    for name in ("project", "copy"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "project" / "train.py").write_text(text)
    return copy(folder / "project", folder / "copy")


def applied(folder, name, text):
    """The file after the first variant of a recipe, None where it is not suited."""
    tree = tree_of(folder, text)
    recipe = recipes.chosen([name])[0]
    try:
        variant = next(recipe.variants(tree, "train.py"))
    except (Unsuited, StopIteration):
        return None
    assert all(tree.change(path, changes) for path, changes in variant.items())
    return (tree.folder / "train.py").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_bad_becomes_good(tmp_path, name):
    bad, good = examples(name, "Bad"), examples(name, "Good")
    assert bad and len(bad) == len(good)
    for index, (before, after) in enumerate(zip(bad, good, strict=True)):
        folder = tmp_path / str(index)
        folder.mkdir()
        assert applied(folder, name, before) == after


@pytest.mark.parametrize("name", NAMES)
def test_good_stays_as_it_is(tmp_path, name):
    for index, text in enumerate(examples(name, "Good")):
        folder = tmp_path / str(index)
        folder.mkdir()
        assert applied(folder, name, text) is None


def test_the_order_is_ours():
    assert [each.name for each in recipes.chosen(NAMES[::-1])] == NAMES


def test_an_unknown_recipe_is_refused():
    with pytest.raises(ValueError, match="amp9"):
        recipes.chosen(["amp9"])

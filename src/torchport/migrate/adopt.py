"""Adds the recipes that the user asks for, one after the other; each is proven, or taken back and said so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchport.finding import Severity
from torchport.migrate.loop import Migration, failed, said
from torchport.migrate.recipe import Launch, Recipe, Runner, Unsuited, Variant
from torchport.migrate.tree import Tree
from torchport.migrated import Adopted, Proof, losses
from torchport.plan import Run
from torchport.text import _


def adopt(
    done: Migration,
    recipes: Sequence[Recipe],
    entry: str,
    run: Runner,
    tell: Callable[[str], None] = lambda step: None,
    has: Callable[[str], bool] = lambda package: True,
) -> list[Adopted]:
    """Applies recipes to a migrated tree, in their own order; what does not hold leaves the tree as it was.

    ``has`` says whether the user's interpreter has a package.
    """
    told: list[Adopted] = []
    before, plain = done.last, done.after
    for recipe in recipes:
        if not done.clean or before is None or plain is None:
            told.append(Adopted(recipe.name, _("first the project has to run on a GPU")))
            continue
        if recipe.needs and not has(recipe.needs):
            missing = _("{package} is missing: pip install {package}").format(package=recipe.needs)
            told.append(Adopted(recipe.name, missing))
            continue
        tell(recipe.name)
        adopted, before, plain = _adopted(recipe, done.tree, entry, run, before, plain)
        told.append(adopted)
    return told


def _adopted(recipe: Recipe, tree: Tree, entry: str, run: Runner, before: Run, plain: Run) -> tuple[Adopted, Run, Run]:
    """The first variant that holds, with the runs of the result; else why none does, with those from before."""
    refused: Adopted | None = None
    state = tree.state()
    try:
        for variant in recipe.variants(tree, entry):
            if not _made(tree, variant):
                tree.restore(state)
                continue
            fresh, again = run(tree.folder, Launch(strict=True)), run(tree.folder, Launch(plain=True))
            held = _held(recipe, tree, run, (before, fresh), (plain, again))
            if held.applied:
                return held, fresh, again
            refused = refused or held
            tree.restore(state)
    except Unsuited as reason:
        refused = refused or Adopted(recipe.name, str(reason))
    return refused or Adopted(recipe.name, _("there is no place for it in this project")), before, plain


def _made(tree: Tree, variant: Variant) -> bool:
    return bool(variant) and all(tree.change(path, changes) for path, changes in variant.items())


def _held(recipe: Recipe, tree: Tree, run: Runner, on_gpu: tuple[Run, Run], on_cpu: tuple[Run, Run]) -> Adopted:
    """What the runs before and after a recipe say of it."""
    gpu, cpu = (Proof(losses(old.records), losses(new.records)) for old, new in (on_gpu, on_cpu))
    name = recipe.name
    for fresh in (on_gpu[1], on_cpu[1]):
        errors = [each for each in fresh.findings if each.severity == Severity.ERROR]
        if failed(fresh) or errors:
            what = str(errors[0].message) if errors else said(fresh)
            return Adopted(name, _("the program does not run with it: {what}").format(what=what), gpu, cpu)
    if not cpu.same:
        return Adopted(name, _("it changes the losses on the CPU"), gpu, cpu)
    if not gpu.within(recipe.tolerance):
        reason = _("it changes the losses on the GPU, by {furthest:.2g} % at most; {allowed:g} % is allowed")
        return Adopted(name, reason.format(furthest=100 * gpu.furthest, allowed=100 * recipe.tolerance), gpu, cpu)
    if recipe.prove is None:
        return Adopted(name, "", gpu, cpu, note=recipe.note)
    try:
        proven = recipe.prove(tree, run)
    except Unsuited as reason:
        return Adopted(name, str(reason), gpu, cpu)
    return Adopted(name, "", gpu, cpu, proven.proof, proven.note)

"""Saves the whole state of a training after each epoch, and goes on from there.

``RESUME=checkpoint.pt`` in the environment starts with the epoch after the one saved. The state is complete: models,
optimizers, schedulers, scalers and random numbers, so that the losses are those of a run that was never stopped.

Bad::

    import torch
    from torch import nn


    def main(batches, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(10):
            for x, y in batches:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

Good::

    import os

    import torch
    from torch import nn


    def save_checkpoint(path, epoch, **parts):
        state = {name: part.state_dict() for name, part in parts.items()}
        state |= {"epoch": epoch, "rng": torch.get_rng_state()}
        if torch.cuda.is_available():
            state["cuda_rng"] = torch.cuda.get_rng_state_all()
        torch.save(state, f"{path}.new")
        os.replace(f"{path}.new", path)  # whole, or the one before


    def load_checkpoint(path, **parts):
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["rng"])
        if torch.cuda.is_available() and "cuda_rng" in state:
            torch.cuda.set_rng_state_all(state["cuda_rng"])
        return state["epoch"] + 1


    def main(batches, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        resume = os.environ.get("RESUME")
        start_epoch = load_checkpoint(resume, model=model, optimizer=optimizer) if resume else 0
        for epoch in range(start_epoch, 10):
            for x, y in batches:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            save_checkpoint("checkpoint.pt", epoch, model=model, optimizer=optimizer)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import is_managed
from torchport.check.source import Source
from torchport.migrate.imports import named, top_imports
from torchport.migrate.models import is_model
from torchport.migrate.recipe import Launch, Proven, Recipe, Runner, Unsuited, Variant
from torchport.migrate.training import Training, epochs, read_program, trainings
from torchport.migrate.tree import Tree
from torchport.migrated import Proof, losses
from torchport.text import _, mark

FILE = "checkpoint.pt"
_STATEFUL = re.compile(r"torch\.(optim\.\w+|optim\.lr_scheduler\.\w+|amp\.GradScaler|cuda\.amp\.GradScaler)")
_RESUMES = re.compile(r"\bresume|load_checkpoint|save_checkpoint", re.IGNORECASE)
# What each generator of random numbers that a project uses adds to the state: how it is kept, and how it is put back.
_GENERATORS = {
    "random": ('state["random"] = {random}.getstate()', '{random}.setstate(state["random"])'),
    "numpy": (
        'state["numpy"] = [x.tolist() if hasattr(x, "tolist") else x for x in {numpy}.random.get_state()]',
        '{numpy}.random.set_state(state["numpy"])',
    ),
}
_SAVE = """\
def save_checkpoint(path, epoch, **parts):
    state = {{name: part.state_dict() for name, part in parts.items()}}
    state |= {{"epoch": epoch, "rng": {torch}.get_rng_state()}}
    if {torch}.cuda.is_available():
        state["cuda_rng"] = {torch}.cuda.get_rng_state_all()
{keep}    {torch}.save(state, f"{{path}}.new")
    os.replace(f"{{path}}.new", path)  # whole, or the one before
"""
_LOAD = """\
def load_checkpoint(path, **parts):
    state = {torch}.load(path, map_location="cpu", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    {torch}.set_rng_state(state["rng"])
    if {torch}.cuda.is_available() and "cuda_rng" in state:
        {torch}.cuda.set_rng_state_all(state["cuda_rng"])
{restore}    return state["epoch"] + 1
"""


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """In the file with the loop over epochs."""
    sources = read_program(tree, entry)
    if any(map(is_managed, sources)) or any(_RESUMES.search(each.text) for each in sources):
        raise Unsuited(_("it resumes already, or a library does it"))
    paths = {each.path for each in sources}
    for training in trainings(tree):
        for loop, _batches in epochs(training.source, training) if training.path in paths else ():
            found = _changes(training, loop)
            if found:
                yield {training.path: changes.together(found)}
    raise Unsuited(_("it has no loop over epochs beside its models and optimizers"))


def _changes(training: Training, loop: ast.AST) -> list[Change]:
    source = training.source
    match loop:
        case ast.For(target=ast.Name(id=epoch), iter=ast.Call(func=ast.Name(id="range"), args=[*given]) as over):
            pass
        case _:
            return []
    parts = list(_parts(source, loop))
    if not parts or len(given) not in (1, 2) or not source.indent(loop.body[0]):
        return []
    first = "0" if len(given) == 1 else source.code(given[0])
    start = source.span(given[0])[0]
    made: list[Change] = [*named(source, "os")[1], *named(source, "torch")[1], _functions(source)]
    if epoch == "_":
        epoch = "epoch"
        made.append(changes.replace(source, loop.target, epoch))
    made.append(
        (start, start, "start_epoch, ") if len(given) == 1 else changes.replace(source, given[0], "start_epoch")
    )
    words = ", ".join(f"{_word(name)}={name}" for name in parts)
    lines = (
        'resume = os.environ.get("RESUME")',
        f"start_epoch = load_checkpoint(resume, {words}) if resume else {first}",
    )
    made.append(changes.before(source, loop, *lines))
    made.append(changes.after(source, loop.body[-1], f'save_checkpoint("{FILE}", {epoch}, {words})'))
    return made if over else []


def _word(name: str) -> str:
    return name.replace(".", "_")


def _functions(source: Source) -> Change:
    """The two functions, behind the imports."""
    torch = named(source, "torch")[0]
    keep = restore = ""
    for module, (kept, put_back) in _GENERATORS.items():
        name, missing = named(source, module)
        if not missing:
            keep += f"    {kept.format(**{module: name})}\n"
            restore += f"    {put_back.format(**{module: name})}\n"
    text = _SAVE.format(torch=torch, keep=keep) + "\n\n" + _LOAD.format(torch=torch, restore=restore)
    return changes.after(source, top_imports(source)[-1], "", "", *text.splitlines())


def _parts(source: Source, loop: ast.For) -> Iterator[str]:
    """The names, known at a loop, of what has a state: models, optimizers, schedulers, scalers."""
    function, seen = source.function(loop), set()
    for node in sorted(source.nodes(ast.Name), key=lambda each: each.lineno):
        if not isinstance(node.ctx, ast.Store) or node.id in seen or node.lineno >= loop.lineno:
            continue
        if (
            source.function(node) not in (function, None)
            or source.loops(node) != source.loops(loop)[: len(source.loops(node))]
        ):
            continue
        if is_model(source, node) or any(_STATEFUL.fullmatch(each) for each in source.makers(node)):
            seen.add(node.id)
            yield node.id


def prove(tree: Tree, run: Runner) -> Proven:
    """A run that is stopped in its last epoch and goes on, against one that is not stopped."""
    whole = losses(run(tree.folder, Launch(strict=True)).records)
    if len(whole) < 2:
        raise Unsuited(_("its run is too short to be stopped on the way"))
    run(tree.folder, Launch(strict=True, steps=len(whole) - 1))
    resumed = run(tree.folder, Launch(strict=True, keep=True, env=(("RESUME", FILE),)))
    rest = losses(resumed.records)
    if resumed.exit_code not in (0, 1) or not 0 < len(rest) < len(whole):
        raise Unsuited(_("its run has no whole epoch after which it could go on: take more epochs, or more --steps"))
    proof = Proof(whole[-len(rest) :], rest)
    if not proof.same:
        raise Unsuited(_("a run that goes on has other losses, by {furthest:.2g}").format(furthest=proof.furthest))
    return Proven(proof)


META = Recipe("checkpoint", mark("the whole state saved after each epoch, and resumed"), variants, prove=prove)

"""Saves the whole state of a training after each epoch, and goes on from there.

``RESUME=checkpoint.pt`` in the environment starts with the epoch after the one saved. The state is complete: models,
optimizers, schedulers, scalers and random numbers, so that the losses are those of a run that was never stopped.

Bad::

    import torch
    from torch import nn


    def main(batches, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        best = float("inf")
        for epoch in range(10):
            for x, y in batches:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            best = min(best, loss.item())

Good::

    import os

    import torch
    from torch import nn


    def save_checkpoint(path, values, **parts):
        state = {**values, **{name: part.state_dict() for name, part in parts.items()}}
        state["rng"] = torch.get_rng_state()
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
        return state


    def main(batches, device):
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        best = float("inf")
        start_epoch, resume = 0, os.environ.get("RESUME")
        if resume:
            saved = load_checkpoint(resume, model=model, optimizer=optimizer)
            start_epoch, best = saved["epoch"] + 1, saved["best"]
        for epoch in range(start_epoch, 10):
            for x, y in batches:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            best = min(best, loss.item())
            save_checkpoint("checkpoint.pt", {"epoch": epoch, "best": best}, model=model, optimizer=optimizer)

Bad::

    import argparse
    import random

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()


    class Trainer:
        def __init__(self, net):
            self.net = net
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr)

        def fit(self, batches, scheduler):
            drawn = torch.Generator()
            history = []
            for epoch in range(10):
                for x in batches:
                    noise = torch.randn(x.shape, generator=drawn) * random.random()
                    loss = (self.net(x + noise) - x).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                history.append(loss.item())
                scheduler.step()

Good::

    import argparse
    import os
    import random

    import torch


    def save_checkpoint(path, values, **parts):
        state = {**values, **{name: part.state_dict() for name, part in parts.items()}}
        state["rng"] = torch.get_rng_state()
        if torch.cuda.is_available():
            state["cuda_rng"] = torch.cuda.get_rng_state_all()
        state["random"] = random.getstate()
        torch.save(state, f"{path}.new")
        os.replace(f"{path}.new", path)  # whole, or the one before


    def load_checkpoint(path, **parts):
        state = torch.load(path, map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(state[name])
        torch.set_rng_state(state["rng"])
        if torch.cuda.is_available() and "cuda_rng" in state:
            torch.cuda.set_rng_state_all(state["cuda_rng"])
        random.setstate(state["random"])
        return state


    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--resume", default="", help="the checkpoint to go on from")
    args = parser.parse_args()


    class Trainer:
        def __init__(self, net):
            self.net = net
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr)

        def fit(self, batches, scheduler):
            drawn = torch.Generator()
            history = []
            start_epoch = 0
            if args.resume:
                saved = load_checkpoint(args.resume, net=self.net, optimizer=self.optimizer, scheduler=scheduler)
                start_epoch, history = saved["epoch"] + 1, saved["history"]
                drawn.set_state(saved["drawn"])
            for epoch in range(start_epoch, 10):
                for x in batches:
                    noise = torch.randn(x.shape, generator=drawn) * random.random()
                    loss = (self.net(x + noise) - x).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                history.append(loss.item())
                scheduler.step()
                save_checkpoint(
                    "checkpoint.pt",
                    {"epoch": epoch, "history": history, "drawn": drawn.get_state()},
                    net=self.net,
                    optimizer=self.optimizer,
                    scheduler=scheduler,
                )
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import is_managed, looks_like_optimizer, receiver
from torchport.check.source import Source
from torchport.migrate.imports import named, top_imports
from torchport.migrate.kept import Kept, kept
from torchport.migrate.options import options
from torchport.migrate.recipe import Launch, Proven, Recipe, Runner, Unsuited, Variant
from torchport.migrate.training import Training, epochs, read_program, trainings
from torchport.migrate.tree import Tree
from torchport.migrated import Proof, losses
from torchport.text import _, mark

FILE = "checkpoint.pt"
FLAG = "--resume"
FUNCTIONS = ("save_checkpoint", "load_checkpoint")
_RESUMES = re.compile(r"resume|load_checkpoint|save_checkpoint", re.IGNORECASE)
_KEYS = frozenset({"path", "values", "epoch", "rng", "cuda_rng", "random", "numpy"})
_WIDEST = 100
# What each generator of random numbers that a project uses adds to the state: how it is kept, and how it is put back.
_GENERATORS = {
    "random": ('state["random"] = {random}.getstate()', '{random}.setstate(state["random"])'),
    "numpy": (
        'state["numpy"] = [x.tolist() if hasattr(x, "tolist") else x for x in {numpy}.random.get_state()]',
        '{numpy}.random.set_state(state["numpy"])',
    ),
}
_SAVE = """\
def save_checkpoint(path, values, **parts):
    state = {{**values, **{{name: part.state_dict() for name, part in parts.items()}}}}
    state["rng"] = {torch}.get_rng_state()
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
{restore}    return state
"""


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """In the file with the loop over epochs; then without the values that cannot be saved, perhaps."""
    sources = read_program(tree, entry)
    if any(map(is_managed, sources)) or any(map(_resumes, sources)):
        raise Unsuited(_("it saves and resumes already, or a library does it"))
    if any(each.calls("torch.distributed.init_process_group") for each in sources):
        raise Unsuited(_("it runs as several ranks, which would all write one file"))
    paths = {each.path for each in sources}
    for training in trainings(tree):
        for loop, _batches in epochs(training.source, training) if training.path in paths else ():
            state = kept(training.source, loop) if isinstance(loop, ast.For) else None
            if state is None or not state.models or not state.others:
                continue
            for all_values in (True, False) if state.values else (True,):
                found = _changes(training, loop, state, all_values)
                if found:
                    yield {training.path: changes.together(found)}
    raise Unsuited(_("it has no loop over epochs beside its models and optimizers"))


def _resumes(source: Source) -> bool:
    """Whether a file names a resume, or gives an optimizer a state."""
    words = {each.id for each in source.nodes(ast.Name)} | {each.attr for each in source.nodes(ast.Attribute)}
    words |= {each.name for each in source.nodes(ast.FunctionDef)}
    words |= {str(each.value) for each in source.nodes(ast.Constant) if str(each.value).startswith("--")}
    return any(_RESUMES.search(each) for each in words) or any(
        looks_like_optimizer(source, receiver(call) or call) for call in source.calls(".load_state_dict")
    )


def _changes(training: Training, loop: ast.AST, state: Kept, all_values: bool) -> list[Change]:
    source = training.source
    match loop:
        case ast.For(target=ast.Name(id=epoch), iter=ast.Call(func=ast.Name(id="range"), args=[*given])):
            pass
        case _:
            return []
    if len(given) not in (1, 2) or not source.indent(loop.body[0]):
        return []
    first = "0" if len(given) == 1 else source.code(given[0])
    start = source.span(given[0])[0]
    made: list[Change] = [*named(source, "os")[1], *named(source, "torch")[1], _functions(source)]
    if epoch == "_":
        epoch = "epoch"
        made.append(changes.replace(source, loop.target, epoch))
    begin = first if first.isidentifier() else "start_epoch"
    if len(given) == 1:
        made.append((start, start, f"{begin}, "))
    elif begin != first:
        made.append(changes.replace(source, given[0], begin))
    left, state = (() if all_values else state.values), replace(state, values=state.values if all_values else ())
    known = options(source)
    if known is not None and known.known_at(loop):
        made.append(known.add(FLAG, 'default="", help="the checkpoint to go on from"'))
        resume, name = f"{known.name}.resume", ""
    else:
        resume, name = "resume", 'os.environ.get("RESUME")'
    made.append(changes.before(source, loop, *_resumed(source, state, begin, first, resume, name)))
    lines = [f"# not saved: {', '.join(left)}"] if left else []
    return [*made, changes.after(source, loop.body[-1], *lines, *_saved(source, state, epoch))]


def _resumed(source: Source, state: Kept, begin: str, first: str, resume: str, given: str) -> list[str]:
    """The lines in front of the loop: what was saved is put back where a checkpoint is named."""
    step = changes.step(source)
    names = [*([begin] if begin != first else []), *([resume] if given else [])]
    lines = [f"{', '.join(names)} = {', '.join([*([first] if begin != first else []), *([given] if given else [])])}"]
    targets = ", ".join((begin, *state.values))
    values = ", ".join(('saved["epoch"] + 1', *(f'saved["{_word(each)}"]' for each in state.values)))
    return [
        *(lines if names else []),
        f"if {resume}:",
        *(f"{step}{line}" for line in _call(step, "saved = load_checkpoint", resume, *_parts(state))),
        f"{step}{targets} = {values}",
        *(f'{step}{each}.set_state(saved["{_word(each)}"])' for each in state.generators),
    ]


def _saved(source: Source, state: Kept, epoch: str) -> list[str]:
    """The call in the end of each round."""
    values = {"epoch": epoch}
    values |= {_word(each): each for each in state.values}
    values |= {_word(each): f"{each}.get_state()" for each in state.generators}
    told = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return _call(changes.step(source), "save_checkpoint", f'"{FILE}"', f"{{{told}}}", *_parts(state))


def _parts(state: Kept) -> list[str]:
    return [f"{_word(each)}={each}" for each in (*state.models, *state.others)]


def _call(step: str, head: str, *arguments: str) -> list[str]:
    """A call in one line, or with a line for each argument where that is too long."""
    line = f"{head}({', '.join(arguments)})"
    return [line] if len(line) <= _WIDEST else [f"{head}(", *(f"{step}{each}," for each in arguments), ")"]


def _word(code: str) -> str:
    """The key of an expression in the state: ``self.model`` is ``model``."""
    word = code.removeprefix("self.").replace(".", "_")
    return f"{word}_" if word in _KEYS else word


def _functions(source: Source) -> Change:
    """The two functions, behind the imports."""
    torch = named(source, "torch")[0]
    keep = restore = ""
    for module, (kept_as, put_back) in _GENERATORS.items():
        name, missing = named(source, module)
        if not missing:
            keep += f"    {kept_as.format(**{module: name})}\n"
            restore += f"    {put_back.format(**{module: name})}\n"
    text = _SAVE.format(torch=torch, keep=keep) + "\n\n" + _LOAD.format(torch=torch, restore=restore)
    last = top_imports(source)[-1]
    following = source.text[source.span(last)[1] :].partition("\n")[2]
    empty = len(following) - len(following.lstrip("\n")) if following.strip() else 2
    return changes.after(source, last, "", "", *text.splitlines(), *[""] * (2 - empty))


def prove(tree: Tree, run: Runner) -> Proven:
    """A run that is stopped in its last epoch and goes on, against one that is not stopped."""
    first = run(tree.folder, Launch(strict=True))
    whole, steps = losses(first.records), max((len(each.steps) for each in first.records), default=0)
    if len(whole) < 2 or steps < 2:
        raise Unsuited(_("its run is too short to be stopped on the way"))
    run(tree.folder, Launch(strict=True, steps=steps - 1))
    option = any((known := options(each)) is not None and FLAG in known.flags() for each in _sources(tree))
    words, env = ((FLAG, FILE), ()) if option else ((), (("RESUME", FILE),))
    resumed = run(tree.folder, Launch(strict=True, keep=True, words=words, env=env))
    rest = losses(resumed.records)
    stopped = any((each.exit or {}).get("reason") == "steps" for each in first.records)
    begins = _begins(whole, rest) if stopped else len(whole) - len(rest)
    if resumed.exit_code not in (0, 1) or not 0 < begins < len(whole):
        raise Unsuited(_("its run has no whole epoch after which it could go on: take more epochs, or more --steps"))
    proof = Proof(whole[begins:], rest[: len(whole) - begins])
    if not proof.same:
        raise Unsuited(_("a run that goes on has other losses, by {furthest:.2g}").format(furthest=proof.furthest))
    return Proven(proof)


def _begins(whole: tuple[float, ...], rest: tuple[float, ...]) -> int:
    """Which loss of a run a later one goes on with, where both are stopped early: the first that is the same."""
    if not rest:
        return len(whole)
    return next((at for at, loss in enumerate(whole) if at and loss == rest[0]), max(1, len(whole) - len(rest)))


def _sources(tree: Tree) -> list[Source]:
    return [source for path in tree.paths() if (source := tree.read(path)) is not None]


META = Recipe("checkpoint", mark("the whole state saved after each epoch, and resumed"), variants, prove=prove)

"""Gives each GPU a process of its own, with DistributedDataParallel.

Without torchrun the program is what it was. With it, each rank takes a part of every batch, so that all of them
together train on as much as one process did. Evaluation stays whole on each rank.

Bad::

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def main():
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
        loader = DataLoader(data, batch_size=16, shuffle=True)
        model = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: loss {loss.item():.3f}")
        torch.save(model.state_dict(), "model.pt")


    if __name__ == "__main__":
        main()

Good::

    import os

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data.distributed import DistributedSampler

    # torchrun sets these: torchrun --nproc-per-node 2 train.py
    DISTRIBUTED = "RANK" in os.environ
    RANK, WORLD_SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


    def main():
        torch.manual_seed(0)
        if DISTRIBUTED:
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
            if torch.cuda.is_available():
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
        sampler = DistributedSampler(data, WORLD_SIZE, RANK) if DISTRIBUTED else None
        loader = DataLoader(data, batch_size=16 // WORLD_SIZE, shuffle=sampler is None, sampler=sampler)
        model = nn.Linear(4, 3).to(device)
        if DISTRIBUTED:
            model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            if DISTRIBUTED:
                loader.sampler.set_epoch(epoch)
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if RANK == 0:
                print(f"epoch {epoch}: loss {loss.item():.3f}")
        if RANK == 0:
            torch.save(getattr(model, "module", model).state_dict(), "model.pt")
        if DISTRIBUTED:
            torch.distributed.destroy_process_group()


    if __name__ == "__main__":
        main()
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.training import is_managed
from torchport.check.source import Source, argument
from torchport.migrate import ranks
from torchport.migrate.imports import behind_imports, named
from torchport.migrate.loop import said
from torchport.migrate.models import Model, trained
from torchport.migrate.recipe import Launch, Proven, Recipe, Runner, Unsuited, Variant
from torchport.migrate.training import Training, read_program, trainings
from torchport.migrate.tree import Tree
from torchport.migrated import Proof, losses
from torchport.plan import Run
from torchport.text import _, mark

_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_GPU = re.compile(r"\bdevice\b|cuda|accelerator")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_DROPOUT = re.compile(r"torch\.nn\.(functional\.dropout\w*|\w*Dropout\w*)")
_NORMALISED = re.compile(r"BatchNorm[123]d|resnet|torchvision\.models")
_RANKS = 2
# The ranks add up in another order than one process does, and each step builds on the one before.
_SUMS = 1e-3
# Where the forward pass draws, each rank draws for its own part. A loss that adds up over the batch, and so trains
# otherwise on two ranks, is off by half.
_DRAWS = 0.2


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """With synchronised statistics where there are any, without, and for models of which a step uses a part only."""
    sources = read_program(tree, entry)
    if any("init_process_group" in each.text for each in sources) or any(map(is_managed, sources)):
        raise Unsuited(_("it has ranks already, or a library that makes them"))
    found = [each for each in trainings(tree) if each.path in {source.path for source in sources}]
    if not found:
        raise Unsuited(_("no loop with backward() and an optimizer's step() is in it"))
    source = found[0].source
    models = trained(source)
    if {each.path for each in found} != {source.path} or not models:
        raise Unsuited(_("its models, optimizers and loops are not in one file"))
    synchronised = any(_NORMALISED.search(each.text) for each in sources)
    for unused in (False, True):
        if synchronised:
            yield {source.path: _changes(source, found, models, True, unused)}
        yield {source.path: _changes(source, found, models, False, unused)}


def _changes(
    source: Source, found: list[Training], models: list[Model], synchronised: bool, unused: bool
) -> list[Change]:
    """All that a file needs."""
    start = _start(source, models)
    made = [*named(source, "os")[1], *ranks.imports(source)]
    name = source.path.rsplit("/", 1)[-1]
    made.append(behind_imports(source, *(line.format(script=name) for line in ranks.CONSTANTS)))
    made += [*ranks.joined(source, start), ranks.left(source, start), *_single(source)]
    done: set[ast.AST] = set()
    for training in found:
        loader, sampled = ranks.sampled(source, training)
        if loader not in done:
            made += [*sampled, *ranks.epoch_set(source, training, loader)]
            done.add(loader)
    for model in models:
        made += ranks.wrapped(source, model, synchronised, unused)
    made += [*ranks.unwrapped(source, models), *ranks.quiet(source)]
    gone = [(start, end) for start, end, text in made if end > start and not text]
    return changes.together(
        [(a, b, text) for a, b, text in made if not any(start <= a and b <= end for start, end in gone) or not text]
    )


def _start(source: Source, models: list[Model]) -> ast.stmt:
    """The statement in front of which the group is made: the first of the models' block that has to do with a GPU."""
    first = _outermost(source, min((each.made for each in models), key=lambda made: made.lineno))
    for statement in changes.block(source, first):
        if statement is first or (
            not any(call in ast.walk(statement) for call in source.calls(*_PARALLEL))  # which may go
            and _GPU.search(source.code(statement))
            and not isinstance(statement, _DEFINITIONS + _IMPORTS)
        ):
            return statement
    return first


def _outermost(source: Source, statement: ast.stmt) -> ast.stmt:
    """The statement of the function's own block around another."""
    for above in source.ancestors(statement):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            break
        if isinstance(above, ast.If) and source.parent(above) is source.tree and "__name__" in source.code(above.test):
            break
        if isinstance(above, ast.stmt):
            statement = above
    return statement


def _single(source: Source) -> Iterator[Change]:
    """The model itself in place of DataParallel around it, and the GPU of the rank in place of the first."""
    for call in source.calls(*_PARALLEL):
        statement = source.statement(call)
        if isinstance(statement, ast.Assign) and call.args:
            same = source.code(statement.targets[0]) == source.code(call.args[0])
            if same and statement.value is call:
                yield changes.remove_statement(source, _only(source, statement))
                continue
        if call.args:
            yield (*source.span(call), source.code(call.args[0]))
    for text in source.nodes(ast.Constant):  # the current one, which each rank chooses
        if text.value == "cuda:0":
            yield (*source.span(text), '"cuda"')


def _only(source: Source, statement: ast.stmt) -> ast.stmt:
    """A statement, or the branch around it where that does nothing else but say so."""
    above = source.parent(statement)
    if not isinstance(above, ast.If) or above.orelse:
        return statement
    rest = [each for each in above.body if each is not statement]
    says = all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and source.code(each.value.func) == "print"
        for each in rest
    )
    return above if says else statement


def prove(tree: Tree, run: Runner) -> Proven:
    """Two ranks against one, with the same batches: the mean of their losses, step by step; without dropout."""
    state = tree.state()
    dropped = _without_dropout(tree)
    try:
        one, two = (run(tree.folder, Launch(strict=True, ranks=count)) for count in (1, _RANKS))
    finally:
        tree.restore(state)
    for done in (one, two):
        if done.exit_code not in (0, 1):
            raise Unsuited(_("its ranks do not run: {what}").format(what=said(done)))
    proof = Proof(_means(one), _means(two))
    draws = any(record.draws for record in one.records)
    if not proof.within(_DRAWS if draws else _SUMS):
        raise Unsuited(
            _("{count} ranks have other losses than one, by {furthest:.2g}").format(
                count=_RANKS, furthest=proof.furthest
            )
        )
    if draws:
        return Proven(proof, _("each rank draws its own random numbers"))
    return Proven(proof, _("compared without dropout, which each rank draws for itself") if dropped else "")


def _without_dropout(tree: Tree) -> bool:
    """Every dropout of a project set to 0, where it is a number or a name; False where there is none."""
    dropped = False
    for path in tree.paths():
        source = tree.read(path)
        found: list[Change] = []
        for call in source.nodes(ast.Call) if source is not None and "dropout" in source.text.lower() else ():
            name = source.name(call.func) if source is not None else ""
            given = [argument(call, "dropout")] if name.startswith("torch.nn.") else []
            if _DROPOUT.fullmatch(name):
                given.append(argument(call, "p", 1 if name.startswith("torch.nn.functional.") else 0))
            found += [changes.replace(source, each, "0.0") for each in given if source is not None and each is not None]
        dropped = bool(found and tree.change(path, found)) or dropped
    return dropped


def _means(run: Run) -> tuple[float, ...]:
    traces = [losses([record]) for record in run.records]
    return tuple(sum(step) / len(step) for step in zip(*traces, strict=False))


META = Recipe("ddp", mark("one process for each GPU"), variants, prove=prove)

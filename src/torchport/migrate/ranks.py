"""Ranks: the parts of a training that change where each GPU has a process of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.rules.loading import LOADER
from torchport.check.source import Source, argument, constant
from torchport.migrate.imports import imported, named
from torchport.migrate.models import Model, calls_model
from torchport.migrate.passing import callers
from torchport.migrate.recipe import Unsuited
from torchport.migrate.training import Training, epochs
from torchport.text import _

# What nn.Module and DistributedDataParallel both have and do alike.
_SHARED = frozenset(
    "parameters named_parameters train eval zero_grad to cuda cpu training apply requires_grad_ forward".split()
)
_WRITES = ("torch.save", "torchvision.utils.save_image", "matplotlib.pyplot.savefig", "numpy.save", "json.dump")
_ENDINGS = (ast.Return, ast.Raise)
CONSTANTS = (
    "# torchrun sets these: torchrun --nproc-per-node 2 {script}",
    'DISTRIBUTED = "RANK" in os.environ',
    'RANK, WORLD_SIZE = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))',
)


def imports(source: Source) -> list[Change]:
    """What the other parts use."""
    return [
        *named(source, "torch")[1],
        *imported(source, "torch.nn.parallel", "DistributedDataParallel")[1],
        *imported(source, "torch.utils.data.distributed", "DistributedSampler")[1],
    ]


def joined(source: Source, statement: ast.stmt) -> list[Change]:
    """The group of processes, made in front of a statement, and each with a GPU of its own."""
    step = changes.step(source)
    torch, _needed = named(source, "torch")
    lines = (
        "if DISTRIBUTED:",
        f'{step}{torch}.distributed.init_process_group("nccl" if {torch}.cuda.is_available() else "gloo")',
        f"{step}if {torch}.cuda.is_available():",
        f'{step}{step}{torch}.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
    )
    return [changes.before(source, statement, *lines)]


def left(source: Source, statement: ast.stmt) -> Change:
    """The end of the group, as the last thing of the block in which it was made."""
    torch, _needed = named(source, "torch")
    last = changes.block(source, statement)[-1]
    lines = ("if DISTRIBUTED:", f"{changes.step(source)}{torch}.distributed.destroy_process_group()")
    put = changes.before if isinstance(last, _ENDINGS) else changes.after
    return put(source, last, *lines)


def wrapped(source: Source, model: Model, synchronised: bool, unused: bool) -> list[Change]:
    """``model = DistributedDataParallel(model)`` behind the statement that makes and moves it."""
    wrapper, _needed = imported(source, "torch.nn.parallel", "DistributedDataParallel")
    step, name = changes.step(source), model.name
    more = ", find_unused_parameters=True" if unused else ""
    lines = ["if DISTRIBUTED:"]
    if synchronised:
        torch, _none = named(source, "torch")
        lines += [
            f"{step}if {torch}.cuda.is_available():",
            f"{step}{step}{name} = {torch}.nn.SyncBatchNorm.convert_sync_batchnorm({name})",
        ]
    lines.append(f"{step}{name} = {wrapper}({name}{more})")
    return [changes.after(source, model.made, *lines)]


def unwrapped(source: Source, models: list[Model]) -> Iterator[Change]:
    """``model.module`` where something is asked of a model that its wrapper does not have: its keys stay the same."""
    names = {each.name for each in models}
    first = min(each.made.lineno for each in models)
    for node in source.nodes(ast.Attribute):
        code = source.code(node.value)
        if code not in names or node.attr in _SHARED:
            continue
        before = source.function(node) is source.function(models[0].made) and node.lineno <= first
        if before or not isinstance(node.ctx, ast.Load):
            continue
        end = source.span(node)[1] if node.attr == "module" else source.span(node.value)[1]
        yield source.span(node.value)[0], end, f'getattr({code}, "module", {code})'


def sampled(source: Source, training: Training) -> tuple[ast.Call, list[Change]]:
    """The loader of a training: a part of the data for each rank, and of the batch, so that all together stay as many.

    Raises Unsuited where there is none, or its options cannot be read.
    """
    loader = _loader(source, training)
    if any(keyword.arg is None for keyword in loader.keywords):
        raise Unsuited(_("the options of its DataLoader are in a dictionary"))
    for option in ("sampler", "batch_sampler"):
        if argument(loader, option) is not None:
            raise Unsuited(_("its DataLoader has a sampler of its own"))
    dataset, shuffle = argument(loader, "dataset", 0), argument(loader, "shuffle", 2)
    statement = source.statement(loader)
    if dataset is None or not begins_line(source, statement):
        raise Unsuited(_("its DataLoader is made inside another expression"))
    sampler, _needed = imported(source, "torch.utils.data.distributed", "DistributedSampler")
    name = "sampler" if source.scope_at(loader).find("sampler") is None else "train_sampler"
    found: list[Change] = []
    data = source.code(dataset)
    if not isinstance(dataset, (ast.Name, ast.Attribute)):  # made once, for both
        data = "dataset" if source.scope_at(loader).find("dataset") is None else "train_dataset"
        found.append(changes.before(source, statement, f"{data} = {source.code(dataset)}"))
        found.append(changes.replace(source, dataset, data))
    shuffled = shuffle is not None and constant(shuffle) is not False
    order = "" if shuffle is not None and constant(shuffle) is True else f", shuffle={_shuffle(source, shuffle)}"
    found.append(
        changes.before(
            source, statement, f"{name} = {sampler}({data}, WORLD_SIZE, RANK{order}) if DISTRIBUTED else None"
        )
    )
    if shuffled and shuffle is not None:
        found.append(changes.replace(source, shuffle, f"{_and(source, shuffle)}{name} is None"))
    size = argument(loader, "batch_size", 1)
    if size is not None:
        code = source.code(size)
        plain = isinstance(size, (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript))
        found.append(changes.replace(source, size, f"{code if plain else f'({code})'} // WORLD_SIZE"))
    found.append(changes.add_argument(source, loader, f"sampler={name}"))
    return loader, found


def _shuffle(source: Source, shuffle: ast.expr | None) -> str:
    return "False" if shuffle is None else source.code(shuffle)


def _and(source: Source, shuffle: ast.expr) -> str:
    return "" if constant(shuffle) is True else f"{source.code(shuffle)} and "


def _loader(source: Source, training: Training) -> ast.Call:
    batches = training.batches
    found = _made(source, batches, 4) if batches is not None else []
    if len(found) != 1:
        raise Unsuited(_("the batches of its training do not come from one DataLoader of the same file"))
    return found[0]


def _made(source: Source, node: ast.expr, steps: int) -> list[ast.Call]:
    """The loaders that an expression may be, looked for through parameters of functions of this file."""
    values = [each for each in source.values(node) if isinstance(each, ast.Call) and source.name(each.func) == LOADER]
    function = source.function(node)
    if values or steps == 0 or function is None or not isinstance(node, ast.Name):
        return values
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if node.id not in names:
        return []
    found: dict[ast.Call, None] = {}
    for call in callers(source, function):
        given = argument(call, node.id, names.index(node.id))
        if given is not None:
            found |= dict.fromkeys(_made(source, given, steps - 1))
    return list(found)


def epoch_set(source: Source, training: Training, loader: ast.Call) -> list[Change]:
    """``set_epoch`` at the beginning of each epoch, for a loader that shuffles; nothing where there is one epoch."""
    if constant(argument(loader, "shuffle", 2)) in (None, False) or training.batches is None:
        return []
    for loop, batches in epochs(source, training):
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or not source.indent(loop.body[0]):
            continue
        name, found = loop.target.id, []
        if name == "_":
            name = "epoch"
            found.append(changes.replace(source, loop.target, name))
        lines = ("if DISTRIBUTED:", f"{changes.step(source)}{source.code(batches)}.sampler.set_epoch({name})")
        return [*found, changes.before(source, loop.body[0], *lines)]
    return []


def quiet(source: Source) -> Iterator[Change]:
    """Only rank 0 prints and writes: statements that do so, and compute nothing on the model, which all ranks do."""
    last: ast.stmt | None = None
    for statement in sorted(source.nodes(ast.Expr), key=lambda each: each.lineno):
        call = statement.value
        if not isinstance(call, ast.Call) or not _writes(source, call) or calls_model(source, call):
            continue
        if not begins_line(source, statement) or _guarded(source, statement):
            continue
        start, step = source.span(statement)[0], changes.step(source)
        around = changes.block(source, statement)
        follows = last is not None and last in around and around.index(last) + 1 == around.index(statement)
        head = "" if follows else f"if RANK == 0:{source.newline}{source.indent(statement)}"
        yield start, start, head + step
        yield from _indented(source, statement, step)
        last = statement


def _indented(source: Source, statement: ast.stmt, step: str) -> Iterator[Change]:
    """The further lines of a statement, unless a text goes over them."""
    start, end = source.span(statement)
    if any(
        isinstance(each, ast.Constant) and isinstance(each.value, (str, bytes)) and each.end_lineno != each.lineno
        for each in ast.walk(statement)
    ):
        return
    at = source.text.find("\n", start, end)
    while at >= 0:
        yield at + 1, at + 1, step
        at = source.text.find("\n", at + 1, end)


def begins_line(source: Source, statement: ast.stmt) -> bool:
    """Whether nothing but white space stands before a statement in its line."""
    return bool(source.indent(statement)) or source.position(source.span(statement)[0])[1] == 1


def _writes(source: Source, call: ast.Call) -> bool:
    name = source.name(call.func)
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return True
    return name in _WRITES or (isinstance(call.func, ast.Attribute) and call.func.attr in ("add_scalar", "savefig"))


def _guarded(source: Source, statement: ast.stmt) -> bool:
    return any(isinstance(above, ast.If) and "RANK" in source.code(above.test) for above in source.ancestors(statement))

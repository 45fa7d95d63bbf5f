"""Makes batches beside the training: workers, pinned memory, copies that do not wait.

Workers are for data sets that read or compute an item when it is asked for; one in memory needs none. Without
``if __name__ == "__main__":`` in the entry there are none either: where processes are started afresh, each would train.

Bad::

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10


    def main(model, device):
        train = DataLoader(CIFAR10("data"), batch_size=64, shuffle=True)
        for images, labels in train:
            images, labels = images.to(device), labels.to(device)
            model(images)


    if __name__ == "__main__":
        main(torch.nn.Identity(), "cuda")

Good::

    import os

    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import CIFAR10


    def main(model, device):
        train = DataLoader(CIFAR10("data"), batch_size=64, shuffle=True, num_workers=min(8, os.cpu_count() or 1),
                           pin_memory=torch.cuda.is_available(), persistent_workers=True)
        for images, labels in train:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            model(images)


    if __name__ == "__main__":
        main(torch.nn.Identity(), "cuda")

Bad::

    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def words(count):
        return TensorDataset(torch.rand(count, 4))


    loader = DataLoader(
        words(64),
        batch_size=8,  # small
    )
    for (x,) in loader:
        x = x.cuda()

Good::

    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def words(count):
        return TensorDataset(torch.rand(count, 4))


    loader = DataLoader(
        words(64),
        batch_size=8,  # small
        pin_memory=torch.cuda.is_available(),
    )
    for (x,) in loader:
        x = x.cuda(non_blocking=True)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import add_argument, replace
from torchport.check.rule import Change
from torchport.check.rules.layers import class_named
from torchport.check.rules.loading import batches, dataset_of, loaders, may_give_cuda, methods, workers
from torchport.check.rules.moves import is_cpu
from torchport.check.rules.steps import looped_over
from torchport.check.rules.training import last_name, receiver
from torchport.check.source import Source, argument, constant, is_open
from torchport.migrate.imports import named
from torchport.migrate.options import options
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_WORKERS = re.compile(r"^-*(n|num|n_|num_|num-)?(workers|cpus?|threads)$|^--nw$|^-j$")
_WIDTH = 110
_LOADER = re.compile(r"loader|(^|_)(dl|batches)$", re.IGNORECASE)


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """Workers that stay, workers anew for each epoch, no workers: which of them draw the same numbers a run shows."""
    sources = read_program(tree, entry)
    if not any(loaders(each) for each in sources):
        raise Unsuited(_("it has no DataLoader"))
    guarded = "__name__" in sources[0].text
    tried: list[dict[str, list[Change]]] = []
    for with_workers, stay in ((True, True), (True, False), (False, False)):
        found = {each.path: _changed(each, with_workers and guarded, stay) for each in sources}
        variant = {path: edits for path, edits in found.items() if edits}
        if variant and variant not in tried:
            tried.append(variant)
            yield variant
    if not tried:
        raise Unsuited(_("its loaders have what they need, or give tensors of the GPU"))


def _changed(source: Source, with_workers: bool, stay: bool) -> list[Change]:
    if may_give_cuda(source):
        return []
    edits: list[Change] = []
    for call in loaders(source):
        if not is_open(call):
            edits += _loader(source, call, with_workers, stay)
    pins = bool(edits) or "pin_memory" in source.text
    return [*edits, *(_moves(source) if pins else [])]


def _loader(source: Source, call: ast.Call, with_workers: bool, stay: bool) -> list[Change]:
    """What one loader lacks, as one more piece of its arguments, with the imports for it."""
    torch, missing = named(source, "torch")
    added: list[str] = []
    edits: list[Change] = []
    gets = workers(call) == 0 and with_workers and not _in_memory(source, call)
    if gets:
        count, needed = _count(source, call)
        given = argument(call, "num_workers", 5)
        edits += [*needed, *([replace(source, given, count)] if given is not None else [])]
        added += [] if given is not None else [f"num_workers={count}"]
    pinned = argument(call, "pin_memory", 7)
    if pinned is None:
        added.append(f"pin_memory={torch}.cuda.is_available()")
        edits += missing
    elif constant(pinned) is False:
        edits += [*missing, replace(source, pinned, f"{torch}.cuda.is_available()")]
    if stay and (gets or (workers(call) or 0) > 0) and argument(call, "persistent_workers") is None:
        added.append("persistent_workers=True")
    return [*edits, *([_added(source, call, added)] if added else [])]


def _added(source: Source, call: ast.Call, texts: list[str]) -> Change:
    """More arguments of a call, each in its line where the others have theirs, else as many in a line as fit."""
    start, end, text = add_argument(source, call, texts[0])
    if text.startswith(("\n", "\r")):
        lead = text[: text.index(texts[0])]
        return start, end, "".join(f"{lead}{each}," for each in texts)
    first = source.span((*call.args, *call.keywords)[0])[0]
    column = source.position(first)[1] - 1
    used = source.position(start)[1] - 1
    whole = ""
    for each in texts:
        if used + len(each) + 3 > _WIDTH:
            whole += f",{source.newline}{' ' * column}{each}"
            used = column + len(each)
        else:
            whole += f", {each}"
            used += len(each) + 2
    return start, end, whole.removeprefix(",") + "," if text.endswith(",") else whole


def _count(source: Source, call: ast.Call) -> tuple[str, list[Change]]:
    """The option of the program for it, else as many as there are cores, eight at most."""
    known = options(source)
    if known is not None and known.known_at(call):
        for flag in known.flags():
            if _WORKERS.search(flag) and flag.startswith("--"):
                return f"{known.name}.{flag.lstrip('-').replace('-', '_')}", []
    name, missing = named(source, "os")
    return f"min(8, {name}.cpu_count() or 1)", missing


def _in_memory(source: Source, call: ast.Call) -> bool:
    """Whether items are there already: tensors, lists, or a data set whose items are looked up and nothing else."""
    given = argument(call, "dataset", 0)
    if given is None:
        return False
    values = list(source.values(given))
    for value in list(values):
        if isinstance(value, ast.Call):
            values += _returned(source, value)
    if any(_is_stored(source, value) for value in values):
        return True
    owner = dataset_of(source, call) or _elsewhere(source, given)
    getters = methods(owner, "__getitem__") if owner is not None else []
    calls = [each for getter in getters for each in ast.walk(getter) if isinstance(each, ast.Call)]
    return bool(getters) and all(last_name(each.func) in ("tensor", "len", "int", "float") for each in calls)


def _is_stored(source: Source, value: ast.expr) -> bool:
    return isinstance(value, (ast.List, ast.ListComp, ast.Tuple)) or (
        isinstance(value, ast.Call) and source.name(value.func) == "torch.utils.data.TensorDataset"
    )


def _returned(source: Source, call: ast.Call) -> list[ast.expr]:
    """What a function of this file gives back."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return [
        value
        for statement in source.nodes(ast.Return)
        if (function := source.function(statement)) is not None and function.name == name and statement.value
        for value in source.values(statement.value)
    ]


def _elsewhere(source: Source, given: ast.expr) -> ast.ClassDef | None:
    """The class of another file of the project whose items a loader gives."""
    for name in source.makers(given):
        module = name.rpartition(".")[0]
        other = source.sibling(module) if module else None
        if other is not None:
            return class_named(other, name)
    return None


def _moves(source: Source) -> list[Change]:
    """``non_blocking=True`` where a loop moves what it takes from a loader."""
    found: list[Change] = []
    for loop in source.nodes(ast.For):
        over = looped_over(loop)
        if batches(source, loop) is None and not any(_LOADER.search(last_name(each)) for each in over):
            continue
        names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        for call in (each for part in loop.body for each in ast.walk(part) if isinstance(each, ast.Call)):
            if _is_move(source, call, names):
                found.append(add_argument(source, call, "non_blocking=True"))
    return found


def _is_move(source: Source, call: ast.Call, names: set[str]) -> bool:
    """Whether a call moves a batch, or a part of one, to the GPU and says nothing of waiting."""
    owner = receiver(call)
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    if not isinstance(owner, ast.Name) or owner.id not in names or argument(call, "non_blocking") is not None:
        return False
    method = last_name(call.func)
    if method == "cuda":
        return len(call.args) < 2
    given = argument(call, "device", 0)
    if method != "to" or given is None or len(call.args) > 1 or is_cpu(source, given):
        return False
    return not source.name(given).startswith("torch.")  # a type


META = Recipe("loader", mark("workers, pinned memory, and copies that do not wait"), variants)

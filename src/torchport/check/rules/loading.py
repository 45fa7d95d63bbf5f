"""Data sets and loaders of one file: which classes give items, which loops take batches, what touches the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.names import Function
from torchport.check.rules.kinds import is_loader
from torchport.check.rules.layers import class_named
from torchport.check.source import Source, argument, constant

LOADER = "torch.utils.data.DataLoader"
_BASES = ("torch.utils.data.Dataset", "torch.utils.data.IterableDataset")
_THROUGH = frozenset({"enumerate", "zip", "iter", "reversed", "list", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange"})
_MOST_BASES = 4


def loaders(source: Source) -> list[ast.Call]:
    """The calls that make a data loader."""
    return source.calls(LOADER)


def workers(call: ast.Call) -> int | None:
    """How many workers a loader gets: 0 where nothing is said, None where that cannot be read."""
    given = argument(call, "num_workers", 5)
    if given is None:
        return 0
    value = constant(given)
    return value if isinstance(value, int) else None


def dataset_classes(source: Source) -> list[ast.ClassDef]:
    """The classes of this file that are data sets of torch or torchvision."""
    return [owner for owner in source.nodes(ast.ClassDef) if _is_dataset(source, owner, _MOST_BASES)]


def _is_dataset(source: Source, owner: ast.ClassDef, steps: int) -> bool:
    for base in owner.bases:
        name = source.name(base)
        if name in _BASES or name.startswith(("torchvision.datasets.", "torch.utils.data.TensorDataset")):
            return True
        parent = class_named(source, name)
        if parent is not None and parent is not owner and steps and _is_dataset(source, parent, steps - 1):
            return True
    return False


def is_iterable(source: Source, owner: ast.ClassDef) -> bool:
    """Whether a class is an IterableDataset of torch itself, not by way of another class."""
    return any(source.name(base) == "torch.utils.data.IterableDataset" for base in owner.bases)


def dataset_of(source: Source, loader: ast.Call) -> ast.ClassDef | None:
    """The class of this file whose items a loader gives, where that is certain."""
    given = argument(loader, "dataset", 0)
    names = source.makers(given) if given is not None else frozenset()
    return class_named(source, next(iter(names))) if len(names) == 1 else None


def methods(owner: ast.ClassDef, *names: str) -> list[Function]:
    """Methods of a class by name, in the order of the text."""
    return [each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name in names]


def inside(source: Source, node: ast.AST, outer: ast.AST) -> bool:
    """Whether a node stands in another."""
    return any(above is outer for above in source.ancestors(node))


def batches(source: Source, loop: ast.For | ast.comprehension) -> ast.expr | None:
    """What stands for the loader in the head of a loop over one, None for another loop."""
    return loader_in(source, loop.iter)


def loader_in(source: Source, node: ast.expr) -> ast.expr | None:
    """The loader that an expression passes on: itself, or inside ``enumerate`` and its like."""
    if is_loader(source, node):
        return node
    if isinstance(node, ast.Call) and (source.name(node.func) or _builtin(source, node.func)) in _THROUGH:
        for given in node.args:
            found = loader_in(source, given)
            if found is not None:
                return found
    return None


def _builtin(source: Source, node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) and source.scope_at(node).find(node.id) is None else ""


def loops_over_loaders(source: Source) -> Iterator[ast.For]:
    """The loops that take batches from a loader of this file."""
    for loop in source.nodes(ast.For):
        if batches(source, loop) is not None:
            yield loop


def uses_cuda(source: Source) -> bool:
    """Whether anything in a file says that it runs on a GPU."""
    return "cuda" in source.text or "torch.accelerator" in source.text


def names_cuda(source: Source, node: ast.AST | None) -> bool:
    """Whether a device is CUDA for certain, or on a machine that has one: ``"cuda" if … else "cpu"``."""
    for value in source.values(node) if node is not None else ():
        text = constant(value)
        if isinstance(text, str) and text.startswith("cuda"):
            return True
        if isinstance(value, ast.Call) and source.name(value.func) == "torch.device":
            given = argument(value, "type", 0) or argument(value, "device", 0)
            if given is not None and given is not node and names_cuda(source, given):
                return True
    return False


def puts_on_gpu(source: Source, call: ast.Call) -> bool:
    """Whether a call makes a CUDA tensor: ``.cuda()``, ``.to("cuda")``, ``device="cuda"``, ``cuda.FloatTensor``."""
    if isinstance(call.func, ast.Attribute) and not source.name(call.func).startswith("torch."):
        if call.func.attr == "cuda":
            return True
        if call.func.attr == "to" and call.args and names_cuda(source, call.args[0]):
            return True
    name = source.name(call.func)
    if name.startswith("torch.cuda.") and name.endswith("Tensor"):
        return True
    return name.startswith("torch.") and name != "torch.device" and names_cuda(source, argument(call, "device"))


def may_give_cuda(source: Source) -> bool:
    """Whether items may be CUDA tensors: a data set or a collate function of this file moves something."""
    owners: list[ast.AST] = [*dataset_classes(source)]
    owners += [each for each in source.nodes(ast.FunctionDef) if "collate" in each.name]
    moves = [*source.calls(".to"), *(call for call in source.nodes(ast.Call) if puts_on_gpu(source, call))]
    return any(inside(source, call, owner) for call in moves for owner in owners)

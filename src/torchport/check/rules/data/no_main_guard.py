"""Finds a script whose workers run the script again.

Where processes are started afresh, as on Windows and macOS and since Python 3.14 on Linux, each imports the main
module: without ``if __name__ == "__main__":`` each worker begins to train, and starting one raises an error.

Bad::

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    train = DataLoader(TensorDataset(torch.randn(100, 3)), batch_size=8, num_workers=2)
    for (batch,) in train:
        print(batch.mean())

Good::

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def main():
        train = DataLoader(TensorDataset(torch.randn(100, 3)), batch_size=8, num_workers=2)
        for (batch,) in train:
            print(batch.mean())

    if __name__ == "__main__":
        main()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import ERROR, WARNING, Hit, Rule
from torchport.check.rules.loading import LOADER, batches, workers
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C507",
    "no-main-guard",
    WARNING,
    mark("`{code}` runs when the module is imported: where processes are started afresh, each does so again"),
    mark('Put it into a function, and call that below `if __name__ == "__main__":`'),
)
_SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")


def look(source: Source) -> Iterator[Hit]:
    """Loops over a loader with workers, and ``spawn``, where an import of the module gets to."""
    if source.path.endswith(".ipynb"):  # nobody imports a notebook
        return
    for loop in source.nodes(ast.For):
        loader = batches(source, loop)
        if loader is None or not any(_has_workers(source, made) for made in source.values(loader)):
            continue
        place = loop.iter if _is_top(source, loop) else _call_at_top(source, source.function(loop))
        if place is not None:
            yield Hit(place, {"code": f"for … in {source.code(loop.iter)}"})
            break
    for call in source.calls(*_SPAWNS):
        if _is_top(source, call) and constant(argument(call, "start_method")) != "fork":
            yield Hit(call, {"code": source.code(call.func)}, severity=ERROR)


def _has_workers(source: Source, made: ast.expr) -> bool:
    return isinstance(made, ast.Call) and source.name(made.func) == LOADER and (workers(made) or 0) > 0


def _call_at_top(source: Source, function: ast.AST | None) -> ast.Call | None:
    """Where the top of the module calls one of its functions."""
    if not isinstance(function, ast.FunctionDef) or source.parent(function) is not source.tree:
        return None
    for call in source.nodes(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id == function.name and _is_top(source, call):
            return call
    return None


def _is_top(source: Source, node: ast.AST) -> bool:
    """Whether code runs when the module is imported, and not only in the main process."""
    for above in source.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(above, ast.If) and "__name__" in source.code(above.test):
            return False
    return True

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
    mark("{what} at the top of the module: where processes are started afresh, each runs this again"),
    mark('Put it into a function, and call that below `if __name__ == "__main__":`'),
)
_SPAWNS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")


def look(source: Source) -> Iterator[Hit]:
    """Loops over a loader with workers, and ``spawn``, outside every function and every guard."""
    for loop in source.nodes(ast.For):
        if not _is_top(source, loop):
            continue
        loader = batches(source, loop)
        for made in source.values(loader) if loader is not None else ():
            if isinstance(made, ast.Call) and source.name(made.func) == LOADER and (workers(made) or 0) > 0:
                yield Hit(loop.iter, {"what": "a loop over a loader with workers stands"})
                break
        else:
            continue
        break
    for call in source.calls(*_SPAWNS):
        if _is_top(source, call) and constant(argument(call, "start_method")) != "fork":
            yield Hit(call, {"what": f"`{source.code(call.func)}` stands"}, severity=ERROR)


def _is_top(source: Source, node: ast.AST) -> bool:
    """Whether code runs when the module is imported, and not only in the main process."""
    for above in source.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(above, ast.If) and "__name__" in source.code(above.test):
            return False
    return True

r"""Finds paths with the backslash of Windows.

On Linux, where GPUs are rented, it is a letter like any other: the file is not found, or one of that odd name is made.

Bad::

    import torch

    state = torch.load("runs\\last.pt", map_location="cpu")

Good::

    import torch

    state = torch.load("runs/last.pt", map_location="cpu")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import WARNING, Hit, Rule
from torchport.check.source import Source, argument, constant
from torchport.text import mark

META = Rule(
    "C902",
    "windows-separator",
    WARNING,
    mark("`{path}` has the backslash of Windows, which is no separator elsewhere"),
    mark("Write `/`, which Windows knows as well"),
)
_TAKERS = {
    "torch.load": 0,
    "torch.save": 1,
    "torch.jit.load": 0,
    "numpy.load": 0,
    "numpy.loadtxt": 0,
    "pandas.read_csv": 0,
    "cv2.imread": 0,
    "PIL.Image.open": 0,
    "os.listdir": 0,
    "os.makedirs": 0,
    "os.mkdir": 0,
    "os.path.exists": 0,
    "os.path.join": 0,
    "pathlib.Path": 0,
    "torchvision.datasets.ImageFolder": 0,
    "torchvision.datasets.CIFAR10": 0,
    "torchvision.datasets.MNIST": 0,
    "torch.utils.tensorboard.SummaryWriter": 0,
}


def look(source: Source) -> Iterator[Hit]:
    """Strings where a path is wanted, by functions that are known."""
    places = [(call, _TAKERS[source.name(call.func)]) for call in source.calls(*_TAKERS)]
    places += [(call, 0) for call in source.nodes(ast.Call) if _is_open(source, call.func)]
    for call, position in places:
        every = source.name(call.func) == "os.path.join"
        for given in call.args if every else [argument(call, "", position)]:
            path = constant(given)
            if given is not None and isinstance(path, str) and "\\" in path[1:] and not path.startswith("http"):
                yield Hit(given, {"path": path}, _change(source, given, path), safe=True)


def _is_open(source: Source, function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "open" and source.scope_at(function).find("open") is None


def _change(source: Source, node: ast.expr, path: str) -> tuple[tuple[int, int, str], ...]:
    """The same string with other separators, where it is written in one piece and has no other escapes."""
    match = re.fullmatch(r"([rR]?)(\"|')([^\"']*)\2", source.code(node))
    if match is None or re.match(r"[A-Za-z]:|\\\\", path):
        return ()
    text = path.replace("\\", "/")
    written = match[3] if match[1] else match[3].replace("\\\\", "\\")
    return (replace(source, node, f"{match[2]}{text}{match[2]}"),) if written == path else ()

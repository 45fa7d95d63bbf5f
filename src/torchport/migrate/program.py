"""Program: the files that an entry is made of, itself and what it imports of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.source import Source
from torchport.migrate.tree import Tree


def program(tree: Tree, entry: str) -> list[str]:
    """The paths of the entry and of all that it imports, directly or not, the entry first."""
    found, waiting = dict[str, None](), [entry]
    while waiting:
        path = waiting.pop(0)
        source = tree.read(path) if path not in found else None
        if source is None:
            continue
        found[path] = None
        for name in _imported(source):
            other = source.sibling(name)
            if other is not None:
                waiting.append(other.path)
    return list(found)


def _imported(source: Source) -> Iterator[str]:
    """The dotted names of the modules that a file may import; a name taken from a package may be one, too."""
    for plain in source.nodes(ast.Import):
        for alias in plain.names:
            parts = alias.name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    for taken in source.nodes(ast.ImportFrom):
        parents = source.module.split(".")[: -taken.level] if taken.level and source.module else []
        base = ".".join([*parents, *([taken.module] if taken.module else [])])
        yield base
        yield from (f"{base}.{alias.name}".lstrip(".") for alias in taken.names if alias.name != "*")

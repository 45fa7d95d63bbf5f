"""Places in a notebook: a run names them by cell, repairs read all cells as one text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from torchport.check.notebook import Notebook
from torchport.check.source import Source
from torchport.finding import Finding
from torchport.migrate.tree import Tree
from torchport.record import Observation, Site

_CELL = re.compile(r"(?P<path>.+\.ipynb) cell \[(?P<number>[1-9]\d*)\]", re.DOTALL)


def joined(observation: Observation, tree: Tree) -> Observation:
    """An observation with its places given by the lines of all cells together."""
    if not any(path.endswith(".ipynb") for path in tree.original):
        return observation
    return replace(observation, site=_joined(observation.site, tree), fields=_joined(observation.fields, tree))


def placed(source: Source, findings: Iterable[Finding]) -> Iterator[Finding]:
    """What reading found, with its places given by cell as a run gives them."""
    return map(source.placed, findings) if isinstance(source, Notebook) else iter(findings)


def _joined(value: Any, tree: Tree) -> Any:
    """Every place in an observation's fields, at any depth."""
    if isinstance(value, dict):
        return {key: _joined(item, tree) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_joined(item, tree) for item in value]
    cell = _CELL.fullmatch(value.path) if isinstance(value, Site) else None
    if cell is None:
        return value
    path = _notebook(cell["path"], tree)
    source = tree.read(path) if path else None
    line = source.line(int(cell["number"]), value.line) if isinstance(source, Notebook) else None
    return replace(value, path=path, line=line) if path and line else value


def _notebook(path: str, tree: Tree) -> str | None:
    """The notebook that a place means. One that has changed its folder gives its name below the new one."""
    name = PurePosixPath(path).name
    named = [each for each in tree.original if PurePosixPath(each).name == name]
    return path if path in tree.original else named[0] if len(named) == 1 else None

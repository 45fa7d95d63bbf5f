r"""Takes paths that only the author's machine has from an option or the environment; what they are stays the default.

Bad::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    state = torch.load("/home/alice/runs/last.pt", map_location="cpu")  # the best so far

Good::

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--last-pt", default="/home/alice/runs/last.pt")
    args = parser.parse_args()
    state = torch.load(args.last_pt, map_location="cpu")  # the best so far

Bad::

    import torch

    DATA_DIR = "D:/data/cats"
    OUT = '/home/alice/out'


    def save(model, epoch):
        torch.save(model.state_dict(), f"/home/alice/runs/{epoch}.pt")

Good::

    import os

    import torch

    DATA_DIR = os.environ.get("DATA_DIR", "D:/data/cats")
    OUT = os.environ.get('OUT', '/home/alice/out')


    def save(model, epoch):
        torch.save(model.state_dict(), f"{os.environ.get('RUNS', '/home/alice/runs')}/{epoch}.pt")
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check.changes import replace
from torchport.check.rule import Change
from torchport.check.rules.configuration import absolute_local_path, windows_separator
from torchport.check.source import Source
from torchport.migrate.imports import named
from torchport.migrate.options import options
from torchport.migrate.recipe import Recipe, Unsuited, Variant
from torchport.migrate.training import read_program
from torchport.migrate.tree import Tree
from torchport.text import _, mark

_ENVIRONMENT = frozenset({"PATH", "HOME", "USER", "PWD", "SHELL", "LANG", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH"})


def variants(tree: Tree, entry: str) -> Iterator[Variant]:
    """Every path of the program that the checks find; with backslashes between folders made slashes."""
    found: dict[str, list[Change]] = {}
    names: dict[str, str] = {}
    for source in read_program(tree, entry):
        edits = [change for hit in windows_separator.look(source) for change in hit.changes]
        edits += _changed(source, names)
        if edits:
            found[source.path] = edits
    if not found:
        raise Unsuited(_("it has no path of one machine alone"))
    yield found


def _changed(source: Source, names: dict[str, str]) -> list[Change]:
    """The changes of one file; ``names`` are those that paths have got so far."""
    known = options(source)
    edits: dict[Change, None] = {}
    for hit in absolute_local_path.look(source):
        node = hit.at
        if not isinstance(node, ast.Constant) or _is_option(source, node):
            continue
        above = source.parent(node)
        inside = isinstance(above, ast.JoinedStr)
        whole = above if isinstance(above, ast.JoinedStr) else node
        path = str(node.value).rpartition("/")[0] if inside else str(node.value)
        code = source.code(whole)
        literal = re.fullmatch(r"([rRfF]*)(\"|')(.*)\2", code, re.DOTALL)
        if not path or literal is None or (inside and "\\" in code):
            continue
        quote = literal[2]
        name = _name(source, node, path, names)
        if not inside and known is not None and known.known_at(node):
            flag = f"--{name.lower().replace('_', '-')}"
            if flag not in known.flags():
                edits[known.add(flag, f"default={code}")] = None
                edits[replace(source, node, f"{known.name}.{name.lower()}")] = None
                continue
        os, missing = named(source, "os")
        edits |= dict.fromkeys(missing)
        if inside:
            other = "'" if quote == '"' else '"'
            text = f"{{{os}.environ.get({other}{name}{other}, {other}{path}{other})}}"
            start = source.text.index(path, source.span(whole)[0])
            edits[start, start + len(path), text] = None
        else:
            edits[replace(source, node, f"{os}.environ.get({quote}{name}{quote}, {code})")] = None
    return list(edits)


def _is_option(source: Source, node: ast.Constant) -> bool:
    """Whether a path is the default of an option already."""
    call = source.enclosing(node, ast.Call)
    return call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"


def _name(source: Source, node: ast.Constant, path: str, names: dict[str, str]) -> str:
    """What a path is called: as the variable or parameter that it is given to, else as its last part."""
    above = source.parent(node)
    chosen = ""
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        chosen = above.targets[0].id
    elif isinstance(above, ast.keyword) and above.arg not in (None, "root", "path", "file", "f", "fname", "filename"):
        chosen = above.arg or ""
    chosen = chosen or re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    chosen = re.sub(r"\W+", "_", chosen, flags=re.ASCII).strip("_").upper() or "DATA"
    chosen = f"DATA_{chosen}" if chosen[0].isdigit() or chosen in _ENVIRONMENT else chosen
    name, number = chosen, 2
    while names.setdefault(name, path) != path:
        name, number = f"{chosen}_{number}", number + 1
    return name


META = Recipe("paths", mark("paths of one machine as options"), variants)

"""Gives a project that never mentions a device one: a variable, and the models moved where they are built."""

from __future__ import annotations

import ast
import re

from torchport.check import changes
from torchport.check.flow.analyse import modules
from torchport.check.rule import Change
from torchport.check.source import Source
from torchport.migrate.tree import Tree

_MENTIONS = re.compile(
    r"\.cuda\(|\.to\(\s*(?:self\.|args\.)?(?:device|dev|DEVICE)\b|device\s*=|torch\.device|['\"]cuda|is_available\(|\bgpu\b"
)
CHOICE = 'device = torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))'


def mentions_device(tree: Tree) -> bool:
    """Whether any source of the project places anything on a device."""
    return any(_MENTIONS.search(_code(source.text)) for path in tree.paths() if (source := tree.read(path)) is not None)


def _code(text: str) -> str:
    """A text without its comments: a placement that is commented out is none."""
    return re.sub(r"#[^\n]*", "", text)


def give_device(tree: Tree, entry: str) -> bool:
    """Adds the variable ``device`` to the entry and moves the models that are built there; False where none is."""
    source = tree.read(entry)
    if source is None:
        return False
    built = modules(source)
    edits: list[Change] = []
    for call in built:
        end = source.span(call)[1]
        if isinstance(source.parent(call), (ast.Assign, ast.AnnAssign)):
            edits.append((end, end, ".to(device)"))
    if not edits:
        return False
    edits += _variable(source)
    return tree.change(entry, edits)


def _variable(source: Source) -> list[Change]:
    """The variable behind the imports, and the import of ``os`` where it is missing."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    last = imports[-1]
    found: list[Change] = []
    bound = source.scope.find("os")
    if bound is None or not any(way.imported == "os" for way in bound[1]):
        found.append(changes.import_line(source, "os"))
    name = "torch" if any(way.imported == "torch" for way in source.scope.bindings.get("torch", ())) else ""
    if not name:
        found.append(changes.import_line(source, "torch"))
    found.append(changes.after(source, last, "", CHOICE))
    return found

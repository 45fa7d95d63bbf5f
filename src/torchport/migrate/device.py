"""Gives a project that never mentions a device one: a variable, and the models moved where they are built."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchport.check import changes
from torchport.check.flow.analyse import modules
from torchport.check.rule import Change
from torchport.check.siblings import Siblings
from torchport.check.source import Source
from torchport.migrate.tree import Tree
from torchport.project import expects_launcher

_MENTIONS = re.compile(
    r"\.cuda\(|\.to\(\s*(?:self\.|args\.)?(?:device|dev|DEVICE)\b|device\s*=|torch\.device|['\"]cuda|is_available\(|\bgpu\b"
)
CHOICE = 'device = torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))'
CHOICE_OF_RANK = CHOICE.replace('"cuda" if', "f\"cuda:{os.environ.get('LOCAL_RANK', 0)}\" if")


def mentions_device(tree: Tree, entry: str) -> bool:
    """Whether the program places anything on a device, as far as its imports lead; the other programs of the project
    do not count.
    """
    waiting = [source] if (source := tree.read(entry)) is not None else []
    seen = {entry}
    while waiting:
        source = waiting.pop()
        if _MENTIONS.search(_code(source.text)):
            return True
        for name in _imported(source):
            found = source.sibling(name)
            if found is not None and found.path not in seen:
                seen.add(found.path)
                Siblings(tree.folder, tree.folder).attach(found)
                waiting.append(found)
    return False


def _imported(source: Source) -> Iterator[str]:
    """The names of modules that a file may import; where a relative one lies is found from the file."""
    for statement in source.nodes(ast.Import):
        yield from (each.name for each in statement.names)
    for origin in source.nodes(ast.ImportFrom):
        prefix = f"{origin.module}." if origin.module else ""
        yield from ([origin.module] if origin.module else [])
        yield from (f"{prefix}{each.name}" for each in origin.names if each.name != "*")


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
    first = min(source.statement(call).lineno for call in built)
    edits += _variable(source, first, ranks=expects_launcher(tree.folder / entry, tree.folder))
    return tree.change(entry, edits)


def _variable(source: Source, first: int, ranks: bool) -> list[Change]:
    """The variable behind the imports above the ``first`` model, and the import of ``os`` where it is missing."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    last = [each for each in imports if each.lineno < first or each is imports[0]][-1]
    found: list[Change] = []
    bound = source.scope.find("os")
    if bound is None or not any(way.imported == "os" for way in bound[1]):
        found.append(changes.import_line(source, "os"))
    name = "torch" if any(way.imported == "torch" for way in source.scope.bindings.get("torch", ())) else ""
    if not name:
        found.append(changes.import_line(source, "torch"))
    found.append(changes.after(source, last, "", CHOICE_OF_RANK if ranks else CHOICE))
    return found

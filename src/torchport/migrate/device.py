"""Gives a program that never mentions a device one: a variable, and what is trained moved where it is built."""

from __future__ import annotations

import ast
import re

from torchport.check import changes
from torchport.check.flow.analyse import built
from torchport.check.rule import Change
from torchport.check.rules.meetings import factory_on
from torchport.check.source import Source, argument, constant
from torchport.migrate.imports import in_order
from torchport.migrate.program import program
from torchport.migrate.tree import Tree
from torchport.project import expects_launcher

_MENTIONS = re.compile(
    r"\.cuda\(|\.to\(\s*(?:self\.|args\.)?(?:device|dev|DEVICE)\b|device\s*=|torch\.device|['\"]cuda|is_available\(|\bgpu\b"
)
_CHOOSES = re.compile(r"cuda|is_available|mps|xpu|accelerator|\bgpu\b|device\s*=\s*(?:args|opt|config|cfg)")
CHOICE = 'torch.device(os.environ.get("DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu"))'


CHOICE_OF_RANK = CHOICE.replace('"cuda" if', "f\"cuda:{os.environ.get('LOCAL_RANK', 0)}\" if")


def mentions_device(tree: Tree, entry: str) -> bool:
    """Whether any file of the program places anything on a device."""
    return any(_MENTIONS.search(_code(text)) for text in _texts(tree, entry))


def _texts(tree: Tree, entry: str) -> list[str]:
    sources = [tree.read(path) for path in program(tree, entry)]
    return [source.text for source in sources if source is not None]


def _code(text: str) -> str:
    """A text without its comments: a placement that is commented out is none."""
    return re.sub(r"#[^\n]*", "", text)


def give_device(tree: Tree, entry: str) -> bool:
    """Gives the program a device that is chosen when it runs; False where it has one, or nothing to place.

    That is a variable in the file that builds the models, and the models moved there; a program without models has
    its trained tensors moved. One that writes ``device = "cpu"`` down chooses there.
    """
    if mentions_device(tree, entry):
        return _choose(tree, entry)
    source = tree.read(entry)
    if source is None:
        return False
    choice = CHOICE_OF_RANK if expects_launcher(tree.folder / entry, tree.folder) else CHOICE
    calls = built(source)
    for where in dict.fromkeys(where for where, _call in calls):
        edits = _models(where, [call for each, call in calls if each is where])
        if edits and tree.change(where.path, [*edits, *_variable(where, edits, choice)]):
            return True
    edits = _leaves(source)
    return bool(edits) and tree.change(entry, [*edits, *_variable(source, edits, choice)])


def _choose(tree: Tree, entry: str) -> bool:
    """``device = torch.device("cpu")``, the one place where a program says so, becomes a choice."""
    if any(_CHOOSES.search(_code(text)) for text in _texts(tree, entry)):
        return False
    found: list[tuple[Source, ast.expr]] = []
    for path in program(tree, entry):
        source = tree.read(path)
        for statement in source.nodes(ast.Assign) if source is not None else ():
            if source is not None and _is_cpu(source, statement.value):
                found.append((source, statement.value))
    if len(found) != 1:
        return False
    source, value = found[0]
    return tree.change(source.path, [changes.replace(source, value, CHOICE), *_imports(source)])


def _is_cpu(source: Source, node: ast.expr) -> bool:
    given = node.args[0] if isinstance(node, ast.Call) and source.name(node.func) == "torch.device" else None
    return bool(constant(given) == "cpu")


def _models(source: Source, calls: list[ast.Call]) -> list[Change]:
    """``.to(device)`` behind the calls that build the models, not behind those whose module becomes part of one."""
    found: list[Change] = []
    for call in calls:
        above = source.parent(call)
        if isinstance(above, (ast.Tuple, ast.List)):
            above = source.parent(above)
        handed = isinstance(above, ast.Call) and above not in calls and isinstance(source.statement(call), ast.Assign)
        if isinstance(above, (ast.Assign, ast.AnnAssign)) or handed:
            end = source.span(call)[1]
            found.append((end, end, ".to(device)"))
    return found


def _leaves(source: Source) -> list[Change]:
    """Tensors that are trained as they are: made with ``requires_grad=True``."""
    found: list[Change] = []
    for call in source.nodes(ast.Call):
        if constant(argument(call, "requires_grad")) is not True:
            continue
        if source.name(call.func) in ("torch.autograd.Variable", "torch.Variable") and call.args:
            end = source.span(call.args[0])[1]
            found.append((end, end, ".to(device)"))
        else:
            found += factory_on(source, call, "device")
    return found


def _variable(source: Source, edits: list[Change], choice: str) -> list[Change]:
    """The variable behind the imports above all that uses it, and the imports that it needs."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    first = min(start for start, _end, _text in edits)
    above = [each for each in imports if source.span(each)[0] < first] or imports[:1]
    return [*_imports(source), changes.after(source, above[-1], "", f"device = {choice}")]


def _imports(source: Source) -> list[Change]:
    """The imports of ``os`` and ``torch`` where a file has none."""
    missing = [name for name in ("os", "torch") if not _is_imported(source, name)]
    return [in_order(source, name) for name in missing]


def _is_imported(source: Source, name: str) -> bool:
    return any(way.imported == name for way in source.scope.bindings.get(name, ()))

"""Finds mixed precision by its old names ``torch.cuda.amp`` and ``torch.cpu.amp``.

Since torch 2.4 they warn at each use. ``torch.amp`` has the same with the kind of device as first argument.

Bad::

    import torch
    from torch.cuda.amp import GradScaler, autocast

    scaler = GradScaler()
    with autocast(enabled=True):
        loss = torch.ones(1).mean()

Good::

    import torch
    from torch.amp import GradScaler, autocast

    scaler = GradScaler("cuda")
    with autocast("cuda", enabled=True):
        loss = torch.ones(1).mean()

Bad::

    import torch as th

    with th.cuda.amp.autocast(True):
        loss = th.ones(1).mean()

Good::

    try:
        from torch.amp import GradScaler
    except ImportError:
        from torch.cuda.amp import GradScaler

    scaler = GradScaler()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchport.check.rule import CERTAIN, WARNING, Change, Hit, Rule
from torchport.check.source import Source, is_open
from torchport.text import mark

META = Rule(
    "C401",
    "amp-deprecated-cuda-namespace",
    WARNING,
    mark("`{old}` is the old name of `torch.amp.{name}`"),
    mark('Use `torch.amp.{name}` with the device type "{device}"'),
    confidence=CERTAIN,
    since=(2, 4),
)
_NAMES = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
_OLD = frozenset(f"torch.{device}.amp.{name}" for device in ("cuda", "cpu") for name in _NAMES)


def look(source: Source) -> Iterator[Hit]:
    """Uses through ``torch`` itself one by one; those through an import all at once, at the import."""
    if ".amp" not in source.text and "import amp" not in source.text:
        return
    uses = [node for node in (*source.nodes(ast.Attribute), *source.nodes(ast.Name)) if _is_old(source, node)]
    groups: dict[ast.AST, list[ast.expr]] = {}
    for node in uses:
        root = _root(node)
        found = source.scope_at(node).find(root.id)
        way = found[1][0] if found is not None and len(found[1]) == 1 else None
        if way is None or source.enclosing(node, ast.Try) or not way.imported or source.enclosing(way.node, ast.Try):
            continue
        if way.imported == "torch" and not _is_made(source, node):
            continue
        if way.imported == "torch":
            fix = _use(source, node)
            yield Hit(node, _words(source, node), (*fix, _renamed(source, node, root)) if fix else (), safe=True)
        else:
            groups.setdefault(way.node, []).append(node)
    for statement, nodes in groups.items():
        changes = [_import(source, statement), *(_use(source, node) for node in nodes)]
        fix = tuple(change for each in changes for change in each) if all(changes) else ()
        yield Hit(statement, _words(source, nodes[0]), fix, safe=True)


def _is_old(source: Source, node: ast.expr) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return isinstance(getattr(node, "ctx", None), ast.Load) and bool(last) and source.name(node) in _OLD


def _is_made(source: Source, node: ast.expr) -> bool:
    """Whether a use makes something: a call, a decorator, another name for it; not the class as such."""
    above = source.parent(node)
    return isinstance(above, (ast.FunctionDef, ast.Assign)) or (isinstance(above, ast.Call) and above.func is node)


def _root(node: ast.expr) -> ast.Name:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node


def _words(source: Source, node: ast.expr) -> dict[str, str]:
    old = source.name(node)
    return {"old": old, "name": old.split(".")[-1], "device": old.split(".")[1]}


def _renamed(source: Source, node: ast.expr, root: ast.Name) -> Change:
    return (*source.span(node), f"{root.id}.amp.{source.name(node).split('.')[-1]}")


def _import(source: Source, statement: ast.AST) -> tuple[Change, ...]:
    """The import with the new module, where all that it names is there."""
    code = source.code(statement)
    if isinstance(statement, ast.ImportFrom) and {each.name for each in statement.names} <= {*_NAMES, "amp"}:
        return ((*source.span(statement), _without_device(code)),)
    if isinstance(statement, ast.Import) and len(statement.names) == 1 and statement.names[0].asname:
        return ((*source.span(statement), _without_device(code)),)
    return ()


def _without_device(code: str) -> str:
    return code.replace("torch.cuda", "torch", 1).replace("torch.cpu", "torch", 1)


def _use(source: Source, node: ast.expr) -> tuple[Change, ...]:
    """A use with the device as its first argument; nothing where it is no plain call or decorator."""
    words = _words(source, node)
    device, wrapper = words["device"], words["name"].startswith("custom")
    parent = source.parent(node)
    end = source.span(node)[1]
    if isinstance(parent, ast.FunctionDef) and wrapper:
        return ((end, end, f'(device_type="{device}")'),)
    if not isinstance(parent, ast.Call) or parent.func is not node or is_open(parent):
        return ()
    start = source.text.index("(", end) + 1
    comma = ", " if parent.args or parent.keywords else ""
    if wrapper:
        return ((start, start, f'device_type="{device}"{comma}'),) if not parent.args else ()
    if words["name"] == "GradScaler" or not parent.args:
        return ((start, start, f'"{device}"{comma}'),)
    first = source.span(parent.args[0])[0]  # the old first argument says whether it is on
    return ((first, first, f'"{device}", enabled='),) if len(parent.args) == 1 else ()

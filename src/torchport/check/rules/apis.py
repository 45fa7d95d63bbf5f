"""Uses of dated interfaces: where a file names what the table in ``dated`` lists, and what to write there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from torchport.check.changes import replace
from torchport.check.rule import Change, Hit
from torchport.check.rules.dated import REMOVED, TABLE, Dated
from torchport.check.rules.layers import spelled
from torchport.check.source import Source
from torchport.text import _


@cache
def _rows() -> tuple[dict[str, Dated], tuple[Dated, ...], frozenset[str]]:
    exact = {row.name.removesuffix("()"): row for row in TABLE if not row.name.endswith(".")}
    modules = tuple(row for row in TABLE if row.name.endswith("."))
    words = {name.rsplit(".", 1)[-1] for name in exact} | {row.name.split(".")[-2] for row in modules}
    return exact, modules, frozenset(words)


def uses(source: Source, kind: str) -> Iterator[Hit]:
    """The uses of what the table calls ``kind``: where it is imported by name, else where it is named."""
    exact, modules, words = _rows()
    for statement in source.nodes(ast.ImportFrom):
        for alias in statement.names if not statement.level else ():
            name = f"{statement.module}.{alias.name}"
            row = exact.get(name) or next((each for each in modules if f"{name}.".startswith(each.name)), None)
            if row is not None and row.kind == kind and not row.name.endswith("()") and not _tried(source, statement):
                yield Hit(alias, _words(row, name))
    for plain in source.nodes(ast.Import):
        for alias in plain.names:
            row = next((each for each in modules if f"{alias.name}.".startswith(each.name)), None)
            if row is not None and row.kind == kind and not _tried(source, plain):
                yield Hit(alias, _words(row, alias.name))
    for node in source.nodes(ast.Attribute):
        if node.attr not in words or not isinstance(node.ctx, ast.Load) or _tried(source, node):
            continue
        above = source.parent(node)
        name = source.name(node)
        called = isinstance(above, ast.Call) and above.func is node
        row = exact.get(name or (f".{node.attr}" if called else ""))
        module = next((each for each in modules if each.name == f"{name}."), None)
        if module is not None and module.kind == kind:
            yield Hit(node, _words(module, name))
        if row is None or row.kind != kind or (not called and (row.kind != REMOVED or row.name.endswith("()"))):
            continue  # a name that is not called may stand in a list of all there are
        if not isinstance(above, ast.Attribute) or row.name.startswith("."):
            change, needs = _change(source, node, row)
            yield Hit(node, _words(row, name or node.attr), change, safe=row.safe, needs=needs)


def _words(row: Dated, name: str) -> dict[str, str]:
    return {"name": name, "since": row.since, "gone": row.gone, "instead": _(row.note) or row.new}


def _tried(source: Source, node: ast.AST) -> bool:
    """Whether the code knows that it may be missing: in a ``try`` for that, or behind a test of it or the version."""
    for above in source.ancestors(node):
        if isinstance(above, ast.Try) and any(_is_for_missing(source, each) for each in above.handlers):
            return True
        if isinstance(above, (ast.If, ast.IfExp)):
            test = source.code(above.test).lower()
            if any(word in test for word in ("hasattr", "version", "major", "minor")):
                return True
    return False


def _is_for_missing(source: Source, handler: ast.ExceptHandler) -> bool:
    names = source.code(handler.type) if handler.type is not None else "Exception"
    return any(name in names for name in ("Exception", "ImportError", "NotFoundError", "AttributeError"))


def _change(source: Source, node: ast.Attribute, row: Dated) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """The new text, and the module that it names where this file has no name for it."""
    if row.new and row.new.rpartition(".")[0] == row.name.rpartition(".")[0]:
        end = source.span(node)[1]
        return ((end - len(node.attr), end, row.new.rpartition(".")[2]),), ()
    if row.new:
        text = spelled(source, row.new)
        return (replace(source, node, text or row.new),), () if text else ("torch",)
    call = source.parent(node)
    if not row.form or not isinstance(call, ast.Call) or call.func is not node:
        return (), ()
    plain = not call.keywords and not any(isinstance(each, (ast.Starred, ast.GeneratorExp)) for each in call.args)
    if not plain or (row.arguments is not None and len(call.args) != row.arguments):
        return (), ()
    given = [source.code(each) for each in call.args]
    linalg = spelled(source, "torch.linalg")
    text = row.form.format(*given, args=", ".join(given), linalg=linalg or "torch.linalg")
    return (replace(source, call, text),), () if linalg else ("torch",)

"""The names by which a file knows what a change uses, and the imports that it lacks."""

from __future__ import annotations

import ast
import sys

from torchport.check import changes
from torchport.check.rule import Change
from torchport.check.source import Source


def named(source: Source, module: str) -> tuple[str, list[Change]]:
    """What a file calls a module, ``th`` for torch say; with the import that is missing."""
    for name, ways in source.scope.bindings.items():
        if any(way.imported == module for way in ways):
            return name, []
    return module, [in_order(source, module)]


def imported(source: Source, module: str, name: str) -> tuple[str, list[Change]]:
    """What a file calls a name of a module; with the import that is missing, behind its imports."""
    for known, ways in source.scope.bindings.items():
        if any(way.imported == f"{module}.{name}" for way in ways):
            return known, []
    line = f"from {module} import {name}"
    package = module.split(".")[0]
    top = top_imports(source)
    related = [each for each in top if _package(each) == package]
    if not top:
        return name, [changes.import_line(source, module)]
    return name, [changes.after(source, (related or top)[-1], line)]


def behind_imports(source: Source, *lines: str) -> Change:
    """Lines behind the imports at the beginning of a file, with an empty line between where it has one."""
    imports = top_imports(source)
    if not imports:
        return changes.before(source, source.tree.body[0], *lines)
    following = source.tree.body[source.tree.body.index(imports[-1]) + 1 :]
    if following and following[0].lineno > (imports[-1].end_lineno or 0) + 1 and not hasattr(following[0], "body"):
        return changes.before(source, following[0], *lines, "")
    return changes.after(source, imports[-1], "", *lines)


def quote(source: Source) -> str:
    """The quotes that a file uses mostly."""
    return "'" if source.text.count("'") > source.text.count('"') else '"'


def top_imports(source: Source) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top level of a file."""
    return [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]


def _package(statement: ast.Import | ast.ImportFrom) -> str:
    name = statement.names[0].name if isinstance(statement, ast.Import) else statement.module or ""
    return name.split(".")[0]


def in_order(source: Source, module: str) -> Change:
    """``import module`` where the alphabet has it among the first imports, in the group of the one before it."""
    run: list[ast.Import] = []
    for each in source.tree.body:
        if isinstance(each, ast.Import):
            run.append(each)
        elif run:
            break
    earlier = [each for each in run if each.names[0].name < module]
    if not earlier and run and module in sys.stdlib_module_names and _package(run[0]) not in sys.stdlib_module_names:
        return changes.before(source, run[0], f"import {module}", "")
    if not earlier:
        return changes.import_line(source, module)
    return changes.after(source, earlier[-1], f"import {module}")

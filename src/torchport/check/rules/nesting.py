"""Puts statements one level deeper, below a head of their own, or one level up."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchport.check.rule import Change
from torchport.check.source import Source


def below(source: Source, statements: Sequence[ast.stmt], head: str) -> tuple[Change, ...]:
    """Statements of one block below a new head, ``with torch.no_grad():`` say; nothing where that is not plain."""
    starts = _line_starts(source, statements)
    if starts is None:
        return ()
    first, indent = source.span(statements[0])[0], source.indent(statements[0])
    unit = "\t" if indent.startswith("\t") or _has_tab(source, statements[0]) else "    "
    return ((first, first, f"{head}{source.newline}{indent}{unit}"), *((each, each, unit) for each in starts[1:]))


def above(source: Source, statements: Sequence[ast.stmt], outer: ast.stmt) -> tuple[Change, ...]:
    """The last statements of a block in the indentation of the statement around it; nothing where that is not plain."""
    starts = _line_starts(source, statements)
    inner, outside = source.indent(statements[0]), source.indent(outer)
    if starts is None or not inner.startswith(outside):
        return ()
    extra = inner[len(outside) :]
    if any(not source.text.startswith(inner, start) for start in starts):
        return ()
    return tuple((start + len(outside), start + len(outside) + len(extra), "") for start in starts)


def _line_starts(source: Source, statements: Sequence[ast.stmt]) -> list[int] | None:
    """Where the lines of some statements begin that are not empty; None where one shares its line with another
    statement, or a text goes on over several lines.
    """
    first, last = statements[0], statements[-1]
    head = source.text[source.offset(first.lineno, 0) : source.span(first)[0]]
    end = source.span(last)[1]
    tail = source.text[end:].partition("\n")[0].strip()
    if head.strip() or (tail and not tail.startswith("#")):
        return None
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, (ast.JoinedStr, ast.Constant)) and node.lineno != node.end_lineno:
                return None
    assert last.end_lineno is not None
    starts = [source.offset(line, 0) for line in range(first.lineno, last.end_lineno + 1)]
    return [start for start in starts if source.text[start:].partition("\n")[0].strip()]


def _has_tab(source: Source, statement: ast.stmt) -> bool:
    body = getattr(statement, "body", None)
    return bool(body) and isinstance(body, list) and source.indent(body[0]).endswith("\t")

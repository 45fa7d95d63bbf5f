"""Texts that rules put into a call, a statement or a file: the smallest edit that keeps the user's layout."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence

from torchport.check.rule import Change
from torchport.check.source import Source


def replace(source: Source, node: ast.AST, text: str) -> Change:
    """Another text in place of a node."""
    start, end = source.span(node)
    return start, end, text


def add_argument(source: Source, call: ast.Call, text: str) -> Change:
    """One more argument after the last one of a call, whether or not a comma stands there."""
    close = source.span(call)[1] - 1
    given: list[ast.AST] = [*call.args, *call.keywords]
    if not given:
        return close, close, text
    last = max(source.span(node)[1] for node in given)
    if last > close:  # f(x for x in y): the parentheses of the call are the generator's, too
        return replace(source, given[0], f"({source.code(given[0])}, {text})")
    comma, last = _after(source.text[last:close], last)
    if comma:  # a trailing comma stays the last thing
        tail = source.text[last:close]
        if "\n" not in tail:
            return last, last, f" {text},"
        indent = source.indent(max(given, key=lambda node: source.span(node)[0]))
        end = last + len(tail.partition("\n")[0].rstrip())  # behind a comment on what stands there
        return end, end, f"{source.newline}{indent}{text}," if indent else f" {text},"
    return last, last, f", {text}"


def _after(tail: str, offset: int) -> tuple[bool, int]:
    """Whether a comma follows, and where what belongs to the argument ends: behind closing parentheses and it."""
    position = end = 0
    while position < len(tail):
        if tail[position] == "#":
            line = tail.find("\n", position)
            position = len(tail) if line < 0 else line
        elif tail[position] == ")":
            position = end = position + 1
        elif tail[position] == ",":
            return True, offset + position + 1
        else:
            position += 1
    return False, offset + end


def remove_argument(source: Source, call: ast.Call, argument: ast.keyword | ast.expr) -> Change:
    """A call without one of its arguments and the comma that goes with it."""
    given = sorted([*call.args, *call.keywords], key=lambda each: source.span(each)[0])
    index = next(i for i, each in enumerate(given) if each is argument)
    start, end = source.span(argument)
    if index + 1 < len(given):
        return start, source.span(given[index + 1])[0], ""
    if index:
        return source.span(given[index - 1])[1], end, ""
    _, end = _after(source.text[end : source.span(call)[1] - 1], end)
    return start, end, ""


def before(source: Source, statement: ast.stmt, *lines: str) -> Change:
    """Lines in front of a statement that stands at the beginning of its line."""
    start = source.span(_with_decorators(statement))[0]
    indent = source.indent(_with_decorators(statement))
    return start, start, "".join(f"{line}{source.newline}{indent}" for line in lines)


def after(source: Source, statement: ast.stmt, *lines: str) -> Change:
    """Lines behind a statement, in its indentation."""
    end = source.span(statement)[1]
    stop = source.text.find("\n", end)
    stop = len(source.text) if stop < 0 else stop
    if source.text[stop - 1 : stop] == "\r":
        stop -= 1
    indent = source.indent(statement)
    return stop, stop, "".join(f"{source.newline}{indent}{line}" for line in lines)


def together(found: Sequence[Change]) -> list[Change]:
    """Changes with those at one place made one, in their order; equal ones count once."""
    texts: dict[tuple[int, int], str] = {}
    for start, end, text in dict.fromkeys(found):
        texts[start, end] = texts.get((start, end), "") + text
    return [(start, end, text) for (start, end), text in texts.items()]


def _with_decorators(statement: ast.stmt) -> ast.AST:
    decorators = getattr(statement, "decorator_list", [])
    return decorators[0] if decorators else statement


def block(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """The statements among which one stands."""
    above = source.parent(statement)
    blocks = (getattr(above, name, None) for name in ("body", "orelse", "finalbody"))
    return next((each for each in blocks if isinstance(each, list) and statement in each), [])


def step(source: Source) -> str:
    """One step of indentation, as the file has it."""
    return "\t" if "\n\t" in source.text else "    "


def remove_statement(source: Source, statement: ast.stmt) -> Change:
    """A statement with its line; ``pass`` where nothing else would be left in its block."""
    start, end = source.span(statement)
    if block(source, statement) == [statement]:
        return start, end, "pass"
    head = source.indent(statement)
    line_end = source.text.find("\n", end)
    tail = source.text[end:line_end] if line_end >= 0 else source.text[end:]
    if tail.strip() or (not head and source.position(start)[1] != 1):
        return start, end, "pass"
    return start - len(head), (line_end + 1 if line_end >= 0 else len(source.text)), ""


def import_line(source: Source, module: str) -> Change:
    """An import behind those that the file has, or behind its docstring and ``__future__``."""
    at: ast.stmt | None = None
    for statement in source.tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if (at is None and docstring) or future:
            at = statement
        elif isinstance(statement, ast.Import) and not future:
            return before(source, statement, f"import {module}")
        else:
            break
    if at is not None:
        return after(source, at, f"import {module}")
    return (*_start(source), f"import {module}{source.newline}")


def _start(source: Source) -> tuple[int, int]:
    """Behind a byte-order mark, ``#!`` and the encoding."""
    offset = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                break
            if token.type == tokenize.COMMENT and token.start[0] <= 2:
                offset = source.offset(token.start[0], 0) + len(token.line)
    except (tokenize.TokenError, SyntaxError):
        pass
    return offset, offset

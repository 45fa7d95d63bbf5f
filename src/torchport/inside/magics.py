"""Turns what a notebook allows beyond Python (magics, shell lines, help) into Python with the same lines."""

from __future__ import annotations

import io
import re
import tokenize

# Magics that run the Python which follows them, and so stand for it.
_RUN_WHAT_FOLLOWS = {"time", "timeit", "prun", "memit", "capture"}

_CELL = re.compile(r"\s*%%(?P<name>\w+)[ \t]*(?P<rest>.*)(?:\n(?P<body>(?:.|\n)*))?")
_LINE = re.compile(
    r"""(?P<indent>[ \t]*)(?:
        (?:(?P<target>[\w.,\[\]'" \t]+?)[ \t]*=[ \t]*)?
            (?:%(?P<magic>\w+)[ \t]*(?P<rest>.*)|!{1,2}(?P<shell>.*))
        | (?P<help>\?{1,2}.*|%{0,2}[\w.*\[\]]+\?{1,2}[ \t]*)
        | (?P<bare>(?:pip3?|conda|mamba)[ \t]+(?:install|uninstall|list|show)\b.*)
    )""",
    re.VERBOSE,
)
_OPTIONS = re.compile(r"(?:-\w+\s*\d*\s+)*")


def to_python(source: str) -> str:
    """``source`` as Python: each magic is a call of ``get_ipython()`` in the line where it stood."""
    cell = _CELL.fullmatch(source)
    if cell is None:
        return _lines_to_python(source.split("\n"))
    name, rest, body = cell["name"], cell["rest"].strip(), cell["body"] or ""
    if name in _RUN_WHAT_FOLLOWS:
        start = "\n" * source[: cell.start("body")].count("\n") if cell["body"] is not None else ""
        return start + _lines_to_python(body.split("\n"))
    return f"get_ipython().run_cell_magic({name!r}, {rest!r}, {body!r})"


def _lines_to_python(lines: list[str]) -> str:
    done: list[str] = []
    while len(done) < len(lines):
        at = len(done)
        line, height = lines[at], 1
        match = _LINE.fullmatch(line)
        if match is None or _is_open("\n".join(done)):
            done.append(line)
            continue
        while line.endswith("\\") and at + height < len(lines):
            line, height = line[:-1] + lines[at + height].strip(), height + 1
        match = _LINE.fullmatch(line)
        done += [_line_to_python(match) if match else line] + [""] * (height - 1)
    return "\n".join(done)


def _line_to_python(match: re.Match[str]) -> str:
    start = match["indent"] + (f"{match['target']} = " if match["target"] else "")
    if match["help"] is not None:
        return f"{start}pass"
    if match["magic"] in _RUN_WHAT_FOLLOWS:
        return start + (_OPTIONS.sub("", match["rest"], count=1) or "pass")
    if match["magic"] is not None:
        return f"{start}get_ipython().run_line_magic({match['magic']!r}, {match['rest'].strip()!r})"
    method = "getoutput" if match["target"] else "system"
    return f"{start}get_ipython().{method}({(match['shell'] or match['bare'] or '').strip()!r})"


def _is_open(text: str) -> bool:
    """Whether the line after ``text`` belongs to a string, bracket or statement that began before it."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO(text).readline):
            pass
    except tokenize.TokenError as error:
        return "multi-line" in str(error) or "triple-quoted" in str(error)
    except SyntaxError:
        return False
    return False


def shows_result(source: str) -> bool:
    """False for a cell that ends in a semicolon, which keeps its last value from being shown."""
    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.string.strip() and token.type != tokenize.COMMENT:
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        return True
    return last != ";"

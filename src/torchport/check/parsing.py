"""Parses Python, and tells of what is not."""

from __future__ import annotations

import ast
import warnings


class Unreadable(Exception):
    """A file that is not Python, as far as this Python knows. ``line`` is None where the parser does not tell."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> ast.Module:
    """The syntax tree of a text. Raises Unreadable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(error.msg, error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(str(error) or type(error).__name__) from None

"""The words of a program without those of its comments, for rules that only ask whether a file knows of something."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from torchport.check.source import Source

_PARTS = re.compile(
    r"""(?P<long>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3})"""
    r"""|(?P<short>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<comment>\#[^\n]*)""",
    re.DOTALL,
)
_known: WeakKeyDictionary[Source, str] = WeakKeyDictionary()


def code_of(source: Source) -> str:
    """A file without comments and without texts of several lines, docstrings among them."""
    if source not in _known:
        _known[source] = plain(source.text)
    return _known[source]


def plain(text: str) -> str:
    """A piece of a program in the same way."""
    return _PARTS.sub(lambda match: match[0] if match["short"] is not None else "", text)

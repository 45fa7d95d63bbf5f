"""Text from a user's program, made safe to show: it may hold all that a file name or a string can."""

from __future__ import annotations

import unicodedata

# Cc: terminal escapes. Cs: halves of a pair, which no encoding takes. Cf holds what turns the direction of
# the text around, and also the joiners of Persian and of emoji, which stay.
_HIDDEN = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def printable(text: str, keep: str = "") -> str:
    """The text with control characters written as escapes, but for those in ``keep``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in keep or not (character in _DIRECTION or unicodedata.category(character) in _HIDDEN)
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )

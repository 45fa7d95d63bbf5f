"""From bytes to text and from paths to modules, as Python has it."""

from __future__ import annotations

import tokenize
from io import BytesIO

from torchport.check.parsing import Unreadable


def encoding(data: bytes) -> str:
    """The encoding that the bytes of a Python file name. Raises Unreadable."""
    try:
        return tokenize.detect_encoding(BytesIO(data).readline)[0]
    except SyntaxError as error:
        raise Unreadable(str(error)) from None


def decode(data: bytes, name: str = "") -> str:
    """The text of a file, line ends and all, by default in the encoding that it names. Raises Unreadable."""
    try:
        return data.decode(name or encoding(data))
    except (UnicodeDecodeError, LookupError) as error:
        raise Unreadable(str(error)) from None


def module_name(path: str) -> str:
    """The name by which other files of the project import one."""
    parts = [part for part in path.removesuffix(".py").split("/") if part not in ("", ".", "..")]
    return ".".join(parts[:-1] if parts[-1:] == ["__init__"] else parts)

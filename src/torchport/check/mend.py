"""Repairs the bytes of a file: encoding, byte-order mark and line ends stay, and all of a notebook but its cells."""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from torchport.check import files
from torchport.check.decoding import decode, encoding
from torchport.check.engine import Readable, read_source
from torchport.check.notebook import Notebook, rewritten
from torchport.check.repair import repair
from torchport.check.siblings import Siblings
from torchport.finding import Finding


@dataclass(frozen=True, slots=True)
class Mended:
    """A file with fixes applied, those that did not hold, and the difference as a patch has it."""

    data: bytes
    fixed: tuple[Finding, ...] = ()
    taken_back: tuple[Finding, ...] = ()
    diff: str = ""


def mend(
    path: str,
    data: bytes,
    look: Callable[[Readable], list[Finding]],
    unsafe: bool = False,
    siblings: Siblings | None = None,
) -> Mended:
    """Applies the safe fixes of what ``look`` finds in a file, with ``unsafe`` all."""
    source, _problems = read_source(path, data, siblings)
    if source is None:
        return Mended(data)
    done = repair(source, look, unsafe)
    fixed, taken_back = done.applied, done.failed
    if isinstance(source, Notebook):
        fixed, taken_back = tuple(map(source.placed, fixed)), tuple(map(source.placed, taken_back))
    if done.text == source.written:
        return Mended(data, taken_back=taken_back)
    name = encoding_of(path, data)
    before = decode(data, name)
    after = rewritten(before, source.written, done.text) if isinstance(source, Notebook) else done.text
    try:
        fresh = after.encode(name)
    except UnicodeEncodeError:  # a fix with letters that the file's encoding does not have
        return Mended(data, taken_back=(*taken_back, *fixed))
    return Mended(fresh, fixed, taken_back, patch(path, before, after))


def patch(path: str, before: str, after: str) -> str:
    """The difference of two texts, as ``patch -p0`` takes it."""
    parts = []
    for line in difflib.unified_diff(_lines(before), _lines(after), path, path):
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def encoding_of(path: str, data: bytes) -> str:
    """The encoding in which a file is read, and written again."""
    if (files.kind_of(path) or "python") == "python":
        return encoding(data)
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"

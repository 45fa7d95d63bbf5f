"""A notebook as one source: its code cells one after the other, magics made harmless, places given by cell.

Offsets stay those of what the user wrote: a magic becomes a comment of equal length, and a cell that does not
parse becomes blank. Repaired cells go back into the file as they are spelled there; nothing else of it changes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torchport.check.parsing import Unreadable, parse
from torchport.check.source import Source
from torchport.finding import Edit, Finding, Fix, Location
from torchport.survey import Problem

_BETWEEN = "\n# ── next cell ──\n"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_MAGIC = re.compile(r"(?m)^(?P<indent>[ \t]*)(?P<magic>[%!?](?:.*\\\n)*.*|[\w.*]+\?\??[ \t]*)$")
_ASSIGNED = re.compile(r"(?m)^(?P<name>[ \t]*[\w., ]+=[ \t]*)(?P<magic>[%!](?:.*\\\n)*.*)$")
# Cell magics whose cell is Python all the same.
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%notify")


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number as a rehearsal counts it, and where its source stands in the file."""

    number: int
    text: str
    start: int
    end: int


class Notebook(Source):
    """The cells of a notebook as one Python file. Raises Unreadable where they do not parse."""

    def __init__(self, path: str, written: str, numbers: Sequence[int], module: str = "") -> None:
        parts = written.split(_BETWEEN)
        if len(parts) != len(numbers):
            raise Unreadable("a cell was torn apart")
        self._written = written
        self._numbers = tuple(numbers)
        self._starts = [0]
        for part in parts[:-1]:
            self._starts.append(self._starts[-1] + len(part) + len(_BETWEEN))
        super().__init__(path, _BETWEEN.join(map(_python, parts)), module)

    @property
    def written(self) -> str:
        return self._written

    def again(self, written: str) -> Notebook:
        other = Notebook(self.path, written, self._numbers, self.module)
        other.sibling = self.sibling
        return other

    def placed(self, finding: Finding) -> Finding:
        """A finding with its places given by cell."""
        return replace(
            finding,
            location=self._place(finding.location) if finding.location else None,
            evidence=tuple(
                replace(each, location=self._place(each.location)) if each.location else each
                for each in finding.evidence
            ),
            fix=self._fix(finding.fix) if finding.fix else None,
        )

    def line(self, number: int, line: int) -> int | None:
        """A line of the cell of that number as a line of all cells together; None where there is no such cell."""
        if number not in self._numbers:
            return None
        return self.position(self._starts[self._numbers.index(number)])[0] + line - 1

    def _place(self, place: Location) -> Location:
        cell = self._cell(self._line_starts[place.line - 1] + (place.column or 1) - 1)
        before = self.position(self._starts[cell])[0] - 1
        end_line = place.end_line - before if place.end_line else None
        return replace(place, path=self._name(cell), line=place.line - before, end_line=end_line)

    def _fix(self, fix: Fix) -> Fix:
        edits = []
        for edit in fix.edits:
            cell = self._cell(edit.start)
            start = self._starts[cell]
            edits.append(Edit(self._name(cell), edit.start - start, edit.end - start, edit.text))
        return replace(fix, edits=tuple(edits))

    def _cell(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def _name(self, cell: int) -> str:
        return f"{self.path} cell [{self._numbers[cell]}]"


def open_notebook(path: str, file: str, module: str = "") -> tuple[Notebook | None, list[Problem]]:
    """The notebook in the text of a file, None where it holds no Python; and the cells that do not parse.

    Raises Unreadable for a file that is no notebook.
    """
    cells = list(read_cells(file))
    texts, problems = [], []
    for cell in cells:
        error = _error(_python(cell.text))
        if error is not None:
            problems.append(Problem(f"{path} cell [{cell.number}]", str(error), error.line))
        texts.append(cell.text if error is None and _BETWEEN not in cell.text else _blank(cell.text))
    if not cells:
        return None, problems
    return Notebook(path, _BETWEEN.join(texts), [cell.number for cell in cells], module), problems


def rewritten(file: str, before: str, after: str) -> str:
    """The text of a notebook's file with the cells that differ between two joined texts."""
    cells = list(read_cells(file))
    pairs = zip(cells, before.split(_BETWEEN), after.split(_BETWEEN), strict=True)
    for cell, old, new in reversed(list(pairs)):
        if old != new:
            file = file[: cell.start] + _spelled(file[cell.start : cell.end], new, file) + file[cell.end :]
    return file


def read_cells(file: str) -> Iterator[Cell]:
    """The code cells that are run and not empty. Raises Unreadable for a file that is no notebook."""
    try:
        content = json.loads(file)
        sheets = content.get("worksheets") or [content]
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        if not _is_python(content.get("metadata") or {}):
            return
        spans = _source_spans(file)
        number = 0
        for cell, (start, end) in zip(cells, spans, strict=True):
            source = cell.get("source", cell.get("input", ""))
            text = source if isinstance(source, str) else "".join(source)
            skipped = "skip-execution" in (cell.get("metadata") or {}).get("tags", ())
            if cell["cell_type"] == "code" and not skipped and text.strip():
                number += 1
                yield Cell(number, text, start, end)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"not a notebook: {error}") from None


def _is_python(metadata: dict[str, Any]) -> bool:
    language = (metadata.get("language_info") or {}).get("name") or (metadata.get("kernelspec") or {}).get("language")
    return not language or str(language).lower() in ("python", "ipython")


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a JSON file, where it stands, and the values in it."""

    start: int
    end: int
    by_key: dict[str, _Value]
    items: list[_Value]


def _source_spans(file: str) -> list[tuple[int, int]]:
    """Where the source of each cell stands in the file, cells of all types; (0, 0) for one that has none."""
    tokens = _TOKEN.finditer(file)
    notebook = _value(tokens, next(tokens))
    sheets = notebook.by_key["worksheets"].items if "worksheets" in notebook.by_key else []
    found = []
    for sheet in sheets or [notebook]:
        for cell in sheet.by_key["cells"].items:
            source = cell.by_key.get("source") or cell.by_key.get("input")
            found.append((source.start, source.end) if source else (0, 0))
    return found


def _value(tokens: Iterator[re.Match[str]], first: re.Match[str]) -> _Value:
    """The value that begins with a token, in a file that is known to be JSON."""
    by_key: dict[str, _Value] = {}
    items: list[_Value] = []
    last = first
    if first[0] == "{":
        while (last := next(tokens))[0] != "}":
            if last[0] != ",":
                next(tokens)  # the colon
                by_key[json.loads(last[0])] = _value(tokens, next(tokens))
    elif first[0] == "[":
        while (last := next(tokens))[0] != "]":
            if last[0] != ",":
                items.append(_value(tokens, last))
    return _Value(first.start(), last.end(), by_key, items)


def _spelled(old: str, new: str, file: str) -> str:
    """A cell's source as JSON, in the layout of what stood there."""
    ascii_only = file.isascii()
    if not old.startswith("["):
        return json.dumps(new, ensure_ascii=ascii_only)
    lines = re.findall(r"[^\n]*\n|[^\n]+", new)
    kept = {json.loads(token[0]): token[0] for token in _TOKEN.finditer(old) if token[0].startswith('"')}
    words = [kept.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines]
    opening = re.match(r"\[\s*", old)
    closing = re.search(r"\s*\]$", old)
    head = opening[0] if opening else "["
    between = "," + (head[1:] or " ")
    return head + between.join(words) + (closing[0] if closing else "]")


def _python(cell: str) -> str:
    """A cell with its magics made harmless, at equal length."""
    if not _MAGIC.search(cell) and not _ASSIGNED.search(cell):
        return cell
    if _error(cell) is None:  # a % at the start of a line may go on with an expression
        return cell
    first = cell.lstrip().split(None, 1)[0]
    if first.startswith("%%") and first not in _PYTHON_CELLS:
        return _blank(cell)
    cell = _MAGIC.sub(lambda match: match["indent"] + _harmless(match["magic"], bool(match["indent"])), cell)
    return _ASSIGNED.sub(lambda match: match["name"] + _harmless(match["magic"], True), cell)


def _harmless(magic: str, needs_value: bool) -> str:
    """A comment as long as the magic, behind a value where a block or an assignment needs one."""
    line, end, more = magic.partition("\n")
    comment = "0" + "#" * (len(line) > 1) + line[2:] if needs_value else "#" + line[1:]
    return comment + end + _blank(more)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _error(text: str) -> Unreadable | None:
    try:
        parse(text)
    except Unreadable as error:
        return error
    return None

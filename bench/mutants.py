"""Removes device handling from correct projects, one place at a time, and counts what is noticed.

    python bench/mutants.py [--read-only] [--jobs 2] [--projects FOLDER] [--list]

A mutant is a project with one edit: ``.to(…)``, ``.cuda()`` or ``.cpu()`` dropped, ``device=`` or ``map_location=``
left out, a buffer made a plain attribute, a ``ModuleList`` a plain list, ``zeros_like`` a factory. Detected by
reading: ``torchport check`` says something of severity warning or error that it does not say of the original. By
running: ``torchport rehearse`` reports a fault (or the program fails) where the original has none.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torchport.check.changes import remove_argument, remove_statement
from torchport.check.engine import check_source, decode, module_name
from torchport.check.source import Source, Unreadable
from torchport.finding import Severity

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = ROOT / "tests" / "projects"
TORCH = (2, 13)
LIKE = {"zeros_like": "zeros", "ones_like": "ones", "randn_like": "randn", "rand_like": "rand"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file of a project."""

    project: Path
    path: str
    line: int
    kind: str
    before: str
    text: str


def mutants(project: Path) -> Iterator[Mutant]:
    """All mutants of a project, file by file, in the order of the text."""
    for file in sorted(project.rglob("*.py")):
        path = file.relative_to(project).as_posix()
        try:
            source = Source(path, decode(file.read_bytes()), module_name(path))
        except Unreadable:
            continue
        for node in (*source.nodes(ast.Call),):
            for kind, (start, end, text) in edits(source, node):
                changed = source.text[:start] + text + source.text[end:]
                if changed != source.text and _parses(changed):
                    yield Mutant(project, path, node.end_lineno or node.lineno, kind, source.code(node)[:80], changed)


def edits(source: Source, call: ast.Call) -> Iterator[tuple[str, tuple[int, int, str]]]:
    """The edits that one call allows."""
    name = source.name(call.func)
    if isinstance(call.func, ast.Attribute):
        method, owner = call.func.attr, call.func.value
        if method in ("to", "cuda", "cpu") and not name and not _is_type(source, call):
            statement = source.parent(call)
            if isinstance(statement, ast.Expr):
                yield f".{method}() dropped", remove_statement(source, statement)
            else:
                yield f".{method}() dropped", (source.span(owner)[1], source.span(call)[1], "")
        if method == "register_buffer" and len(call.args) >= 2 and isinstance(call.args[0], ast.Constant):
            value = source.code(call.args[1])
            yield "buffer made an attribute", (*source.span(call), f"{source.code(owner)}.{call.args[0].value} = {value}")
    for keyword in call.keywords:
        if keyword.arg == "device" and name.startswith("torch.") and name != "torch.Generator":
            yield "device= left out", remove_argument(source, call, keyword)
        if keyword.arg == "device" and not name.startswith("torch."):
            yield "device= left out", remove_argument(source, call, keyword)
        if keyword.arg == "device" and name == "torch.Generator":
            yield "generator without device", remove_argument(source, call, keyword)
        if keyword.arg == "map_location":
            yield "map_location left out", remove_argument(source, call, keyword)
    if name == "torch.nn.ModuleList" and len(call.args) == 1:
        inner = source.code(call.args[0])
        inner = f"list{inner}" if isinstance(call.args[0], ast.GeneratorExp) else inner
        yield "ModuleList made a list", (*source.span(call), inner)
    last = name.rsplit(".", 1)[-1]
    if name.count(".") == 1 and last in LIKE and len(call.args) == 1 and not call.keywords:
        start, end = source.span(call)
        yield "like made a factory", (start, end, f"torch.{LIKE[last]}({source.code(call.args[0])}.shape)")


def _is_type(source: Source, call: ast.Call) -> bool:
    """``.to(torch.float32)`` and the like."""
    if call.func.attr != "to" or not call.args:  # type: ignore[attr-defined]
        return False
    text = source.code(call.args[0])
    return text.startswith("torch.") and "device" not in text or "dtype" in text


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


# By reading


def read(project: Path, path: str = "", text: str = "") -> Counter[tuple[str, str, str]]:
    """What ``check`` says of a project, with one file's text replaced: (path, id, line of code)."""
    sources: dict[str, Source | None] = {}

    def sibling(name: str) -> Source | None:
        if name not in sources:
            sources[name] = None
            for file in (project / f"{name.replace('.', '/')}.py", project / name.replace(".", "/") / "__init__.py"):
                if file.is_file():
                    sources[name] = load(file)
        return sources[name]

    def load(file: Path) -> Source | None:
        place = file.relative_to(project).as_posix()
        try:
            source = Source(place, text if place == path else decode(file.read_bytes()), module_name(place))
        except Unreadable:
            return None
        source.sibling = sibling
        return source

    found: Counter[tuple[str, str, str]] = Counter()
    for file in sorted(project.rglob("*.py")):
        source = load(file)
        for each in check_source(source, TORCH) if source else ():
            if each.severity > Severity.INFO and each.location:
                found[each.location.path, each.id, source.text.splitlines()[each.location.line - 1].strip()] += 1
    return found


# By running


def run(project: Path, entry: list[str], options: list[str]) -> tuple[int, list[tuple[str, str, int]]]:
    """Exit code and findings (id, path, line) of a rehearsal."""
    command = [sys.executable, "-m", "torchport", "rehearse", "--python", sys.executable, "--format", "json"]
    done = subprocess.run(
        [*command, "--timeout", "120", *options, *entry], cwd=project, capture_output=True, text=True, timeout=300
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return done.returncode, []
    return done.returncode, [
        (each["id"], (each["location"] or {}).get("path", ""), (each["location"] or {}).get("line", 0))
        for each in report["findings"]
        if each["severity"] != "info"
    ]


def run_mutant(mutant: Mutant, entry: list[str], options: list[str]) -> tuple[int, list[tuple[str, str, int]]]:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        shutil.copytree(mutant.project, copy)
        (copy / mutant.path).write_bytes(mutant.text.encode())
        return run(copy, entry, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projects", type=Path, default=PROJECTS, help="a folder of projects: NAME/right")
    parser.add_argument("--read-only", action="store_true", help="do not run anything")
    parser.add_argument("--list", action="store_true", help="show what was missed")
    options = parser.parse_args()
    rows: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for folder in sorted(options.projects.glob("*/right")):
        original = read(folder)
        for mutant in mutants(folder):
            rows[mutant.kind] += 1
            fresh = read(folder, mutant.path, mutant.text) - original
            if fresh:
                seen[mutant.kind] += 1
            elif options.list:
                print(f"missed  {folder.parent.name}/{mutant.path}:{mutant.line}  {mutant.kind}  {mutant.before!r}")
    for kind, count in rows.most_common():
        print(f"{kind:28}{count:5}{seen[kind]:5}  {seen[kind] / count:6.1%}")
    print(f"{'all':28}{rows.total():5}{seen.total():5}  {seen.total() / max(rows.total(), 1):6.1%}")


if __name__ == "__main__":
    main()

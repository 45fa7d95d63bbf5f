"""Removes device handling from correct projects, one place at a time, and counts what is noticed.

    python bench/mutants.py [--run [--repair]] [--sample N] [--jobs 2] [--projects FOLDER] [--list]

A mutant is a project with one edit: ``.to(…)``, ``.cuda()`` or ``.cpu()`` dropped, ``device=`` or ``map_location=``
left out, a buffer made a plain attribute, a ``ModuleList`` a plain list, ``zeros_like`` a factory. Detected by
reading: ``torchport check`` says something of severity warning or error that it does not say of the original. By
running: ``torchport rehearse`` reports an error, or the program fails. Placed: a place that the report names is the
line of the edit, or one that gives what it moved its value. Repaired: ``torchport migrate`` makes it clean, losses as
on the CPU.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    lines: frozenset[int]  # of the edit, and where what is no longer moved gets its value


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
                    line = node.end_lineno or node.lineno
                    yield Mutant(project, path, line, kind, source.code(node)[:80], changed, right_lines(source, node))


def right_lines(source: Source, call: ast.Call) -> frozenset[int]:
    """The lines of a call, and those that give a value to the name that it moves."""
    found = set(range(call.lineno, (call.end_lineno or call.lineno) + 1))
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    while isinstance(owner, (ast.Attribute, ast.Subscript, ast.Call)):
        owner = owner.func if isinstance(owner, ast.Call) else owner.value
    ways = source.scope_at(call).find(owner.id) if isinstance(owner, ast.Name) else None
    return frozenset(found | {way.node.lineno for way in (ways[1] if ways else ()) if hasattr(way.node, "lineno")})


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
            yield (
                "buffer made an attribute",
                (*source.span(call), f"{source.code(owner)}.{call.args[0].value} = {value}"),
            )
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
    return (text.startswith("torch.") and "device" not in text) or "dtype" in text


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


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one mutant."""

    mutant: Mutant
    read: bool
    ran: bool | None = None
    placed: bool | None = None
    repaired: bool | None = None


def in_copy(mutant: Mutant, work: Callable[[Path], Any]) -> Any:
    """Works on the mutated project, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, mutant.project.parent.name)
        shutil.copytree(mutant.project, copy)
        (copy / mutant.path).write_bytes(mutant.text.encode())
        return work(copy)


def torchport(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchport", *words]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, env=environ)


def rehearsed(folder: Path, entry: str, options: list[str]) -> tuple[bool, set[tuple[str, int]]]:
    """Whether a rehearsal says that something is wrong, and at which lines."""
    words = ["rehearse", "--python", sys.executable, "--format", "json", "--timeout", "200", *options]
    done = torchport(folder, *words, *shlex.split(entry))
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return done.returncode not in (0, 1), set()
    faults = [each for each in report["findings"] if each["severity"] == "error"]
    return bool(faults) or done.returncode not in (0, 1), set(places(faults))


def places(report: Any) -> Iterator[tuple[str, int]]:
    """Every place that a part of a report names."""
    if isinstance(report, dict):
        if isinstance(report.get("path"), str) and isinstance(report.get("line"), int):
            yield report["path"], report["line"]
        report = list(report.values())
    for each in report if isinstance(report, list) else ():
        yield from places(each)


def migrated(folder: Path, entry: str) -> bool:
    """Whether ``migrate`` makes it run strictly with the losses that it has on the CPU."""
    return torchport(folder, "migrate", "--python", sys.executable, "--entry", entry).returncode == 0


def look(mutant: Mutant, original: Counter[tuple[str, str, str]], options: argparse.Namespace) -> Seen:
    found = bool(read(mutant.project, mutant.path, mutant.text) - original)
    if not options.run:
        return Seen(mutant, found)
    said = tomllib.loads((mutant.project.parent / "project.toml").read_text(encoding="utf-8"))
    entry = " ".join(map(shlex.quote, said["entry"]))
    gpus = ["--gpus", str(said["gpus"])] if said.get("gpus", 1) > 1 else []
    ran, lines = in_copy(mutant, lambda folder: rehearsed(folder, entry, gpus))
    placed = any(path == mutant.path and line in mutant.lines for path, line in lines) if ran else None
    repaired = in_copy(mutant, lambda folder: migrated(folder, entry)) if options.repair and ran and not gpus else None
    return Seen(mutant, found, ran, placed, repaired)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projects", type=Path, default=PROJECTS, help="a folder of projects: NAME/right")
    parser.add_argument("--run", action="store_true", help="rehearse each mutant, too")
    parser.add_argument("--repair", action="store_true", help="and migrate it")
    parser.add_argument("--sample", type=int, help="only so many, chosen at random with seed 0")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="show what was missed")
    options = parser.parse_args()
    jobs = []
    alarms = lines = 0
    for folder in sorted(options.projects.glob("*/right")):
        original = read(folder)
        alarms += sum(original.values())
        lines += sum(len(path.read_bytes().splitlines()) for path in folder.rglob("*.py"))
        jobs += [(mutant, original) for mutant in mutants(folder)]
    if options.sample:
        jobs = random.Random(0).sample(jobs, min(options.sample, len(jobs)))
    with ThreadPoolExecutor(options.jobs if options.run else 1) as pool:
        seen = list(pool.map(lambda job: look(*job, options), jobs))
    print(f"{'mutants':28}{'':6}{'read':>8}{'run':>8}{'either':>8}{'placed':>8}{'repaired':>10}")
    kinds = Counter(each.mutant.kind for each in seen)
    for kind in (*(kind for kind, _count in kinds.most_common()), "all"):
        print(row(kind, [each for each in seen if kind in (each.mutant.kind, "all")]))
    print(f"unmutated: {alarms} findings of severity warning or error in {lines} lines")
    if options.list:
        for each in seen:
            missed = [name for name in ("read", "ran", "placed", "repaired") if getattr(each, name) is False]
            if missed:
                at = f"{each.mutant.project.parent.name}/{each.mutant.path}:{each.mutant.line}"
                print(f"{', '.join(missed):24}{at:40}{each.mutant.kind:26}{each.mutant.before!r}")


def row(kind: str, seen: list[Seen]) -> str:
    def share(values: list[bool | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{sum(known) / len(known):.1%}" if known else "-"

    either = [each.read or each.ran for each in seen] if any(each.ran is not None for each in seen) else []
    columns = (
        share([each.read for each in seen]),
        share([each.ran for each in seen]),
        share(either),
        share([each.placed for each in seen]),
    )
    repaired = share([each.repaired for each in seen])
    return f"{kind:28}{len(seen):6}" + "".join(f"{column:>8}" for column in columns) + f"{repaired:>10}"


if __name__ == "__main__":
    main()

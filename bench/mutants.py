"""Removes device handling from correct projects, one place at a time, and counts what is noticed.

    python bench/mutants.py [--run] [--repair N] [--sample N] [--save FILE] [--list]
        [--public CHECKOUTS [--python PYTHON]] [FOLDER…]

A mutant is a project with one edit of mutations.py. Detected by reading: ``torchport check`` says something of severity
warning or error that it does not say of the original. By running: ``torchport rehearse`` reports an error, or the
program fails. Placed: a place that the report names is the line of the edit, or one that gives what it moved its
value. Repaired: ``torchport migrate`` makes it clean, with the losses that it has on the CPU.

FOLDERs hold projects as tests/projects does (NAME/right with NAME/project.toml); without one, that folder is taken.
With --public, mutants of public projects at pinned commits, on fake data, in the lines that their programs come to.
What --save keeps is not done again. Mutants that no run on CUDA could notice are those of unnoticeable.toml, each with
its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from mutations import Mutant, mutants  # noqa: E402
from subjects import Subject, ours, public  # noqa: E402

from torchport.check.decoding import decode, module_name  # noqa: E402
from torchport.check.engine import check_source  # noqa: E402
from torchport.check.source import Source, Unreadable  # noqa: E402
from torchport.finding import Severity  # noqa: E402

TORCH = (2, 13)
COLUMNS = ("read", "ran", "placed", "repaired")


@dataclass(slots=True)
class Seen:
    """What became of one mutant; None was not tried."""

    mutant: Mutant
    read: bool | None = None
    ran: bool | None = None
    placed: bool | None = None
    repaired: bool | None = None


# By reading


def read(project: Path, path: str = "", text: str = "") -> Counter[tuple[str, str, str, str]]:
    """What ``check`` says of a project, with one file's text replaced: (severity, path, id, line of code)."""
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

    found: Counter[tuple[str, str, str, str]] = Counter()
    for file in sorted(project.rglob("*.py")):
        source = load(file)
        for each in check_source(source, TORCH) if source else ():
            if each.severity > Severity.INFO and each.location:
                code = source.text.splitlines()[each.location.line - 1].strip()
                found[each.severity.value, each.location.path, each.id, code] += 1
    return found


# By running


def in_copy(subject: Subject, mutant: Mutant, work: Callable[[Path], Any]) -> Any:
    """Works on the mutated project, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, subject.project.parent.name)
        shutil.copytree(subject.project, copy, symlinks=True)
        (copy / mutant.path).write_bytes(mutant.text.encode())
        return work(copy / subject.folder)


def torchport(subject: Subject, folder: Path, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchport", verb, "--python", subject.python, *words]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", **subject.environ}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, env=environ)


def rehearsed(subject: Subject, folder: Path) -> tuple[bool, set[tuple[str, int]]]:
    """Whether a rehearsal says that something is wrong, and at which lines."""
    words = ("--format", "json", "--timeout", "200", *subject.options, *shlex.split(subject.entry))
    done = torchport(subject, folder, "rehearse", *words)
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


def migrated(subject: Subject, folder: Path) -> bool:
    """Whether ``migrate`` makes it run strictly with the losses that it has on the CPU."""
    words = ("--entry", subject.entry, "--timeout", "300", *subject.options)
    return torchport(subject, folder, "migrate", *words).returncode == 0


def look(subject: Subject, seen: Seen, original: Counter[tuple[str, str, str, str]], run: bool, repair: bool) -> None:
    """Fills in what is asked for and not known yet."""
    mutant = seen.mutant
    if seen.read is None:
        seen.read = bool(read(subject.project, mutant.path, mutant.text) - original)
    if run and seen.ran is None:
        seen.ran, lines = in_copy(subject, mutant, lambda folder: rehearsed(subject, folder))
        root = Path(subject.folder)
        if seen.ran:
            named = {(os.path.normpath(root / path), line) for path, line in lines} | lines
            seen.placed = any(path == mutant.path and line in mutant.lines for path, line in named)
    if repair and seen.ran and seen.repaired is None:
        seen.repaired = in_copy(subject, mutant, lambda folder: migrated(subject, folder))


# What is known from before


def load(file: Path | None) -> dict[str, dict[str, bool | None]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file and file.is_file() else []
    return {row["mutant"]: row for row in map(json.loads, lines)}


def note(file: Path | None, seen: Seen) -> None:
    if file is not None:
        row = {"mutant": seen.mutant.name, **{name: getattr(seen, name) for name in COLUMNS}}
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def unnoticeable() -> dict[str, str]:
    """The mutants that no run on CUDA could notice, by name, with the reason."""
    listed = tomllib.loads((HERE / "unnoticeable.toml").read_text(encoding="utf-8"))
    return {name: reason for reason, names in listed.items() for name in names}


def main() -> None:
    options = _options()
    subjects = public(options.public, options.python) if options.public else ours(options.folders)
    work: list[tuple[Subject, Seen, Counter[tuple[str, str, str, str]]]] = []
    known = load(options.save)
    alarms: Counter[str] = Counter()
    lines = 0
    for subject in subjects:
        original = read(subject.project)
        for (severity, path, rule, code), count in original.items():
            alarms[f"{severity:8}{subject.name} {path} {rule} {code}"] += count
        lines += sum(len(path.read_bytes().splitlines()) for path in subject.project.rglob("*.py"))
        for mutant in mutants(subject.project, subject.name):
            if subject.takes(mutant.path, mutant.first, mutant.line):
                before = known.get(mutant.name, {})
                work.append((subject, Seen(mutant, *(before.get(name) for name in COLUMNS)), original))
    if options.sample:
        work = random.Random(0).sample(work, min(options.sample, len(work)))
    mended = {id(each) for each in random.Random(0).sample(work, min(options.repair, len(work)))}

    def done(job: tuple[Subject, Seen, Counter[tuple[str, str, str, str]]]) -> None:
        before = [getattr(job[1], name) for name in COLUMNS]
        look(*job, options.run or id(job) in mended, id(job) in mended)
        if before != [getattr(job[1], name) for name in COLUMNS]:
            note(options.save, job[1])

    with ThreadPoolExecutor(options.jobs if options.run or options.repair else 1) as pool:
        list(pool.map(done, work))
    show([seen for _subject, seen, _original in work], options.list)
    errors = sum(count for each, count in alarms.items() if each.startswith("error"))
    print(f"unmutated: {errors} errors and {sum(alarms.values()) - errors} warnings in {lines} lines")
    for each, count in alarms.items() if options.list else ():
        print(f"  {count} × {each}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="folders of projects: NAME/right")
    parser.add_argument("--public", type=Path, metavar="CHECKOUTS", help="public projects, cloned there as owner+name")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of public projects")
    parser.add_argument("--run", action="store_true", help="rehearse each mutant, too")
    parser.add_argument("--repair", type=int, default=0, metavar="N", help="migrate so many, chosen at random, seed 0")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, chosen at random with seed 0")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep results there, and take them from there")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="show what was missed")
    return parser.parse_args()


def show(seen: Sequence[Seen], listed: bool) -> None:
    """The table, what nothing could notice, and on demand what was missed."""
    hidden = unnoticeable()
    print(f"{'mutants':34}{'':6}{'read':>8}{'run':>8}{'either':>8}{'placed':>8}{'repaired':>10}")
    kinds = Counter(each.mutant.kind for each in seen)
    for kind in (*(kind for kind, _count in kinds.most_common()), "all"):
        print(row(kind, [each for each in seen if kind in (each.mutant.kind, "all")]))
    cannot = [each for each in seen if each.mutant.name in hidden]
    if cannot:
        print(row("all that CUDA could notice", [each for each in seen if each.mutant.name not in hidden]))
        print(f"no run on CUDA could notice {len(cannot)} of {len(seen)}:")
    for each in cannot:
        print(f"  {each.mutant.place:44}{each.mutant.kind:36}{hidden[each.mutant.name]}")
    for each in seen if listed else ():
        missed = [name for name in COLUMNS if getattr(each, name) is False]
        if missed:
            print(f"{', '.join(missed):28}{each.mutant.place:40}{each.mutant.kind:28}{each.mutant.before!r}")


def row(kind: str, seen: Sequence[Seen]) -> str:
    def share(values: list[bool | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{sum(known) / len(known):.1%}" if known else "-"

    either = [each.read or each.ran for each in seen] if any(each.ran is not None for each in seen) else []
    columns = [share(values) for values in ([each.read for each in seen], [each.ran for each in seen], either)]
    columns.append(share([each.placed for each in seen]))
    known = sum(each.repaired is not None for each in seen)
    repaired = share([each.repaired for each in seen]) + (f" of {known}" if known else "")
    return f"{kind:34}{len(seen):6}" + "".join(f"{column:>8}" for column in columns) + f"  {repaired:>14}"


if __name__ == "__main__":
    main()

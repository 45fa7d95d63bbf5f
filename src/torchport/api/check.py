"""Check: read a project's source, and tell and repair what would fail, crawl or differ on a GPU."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchport import config
from torchport.check import baseline, files, target
from torchport.check.baseline import BaselineError
from torchport.check.cache import Cache
from torchport.check.decoding import decode
from torchport.check.engine import Checked, check_file, check_source
from torchport.check.mend import Mended, mend
from torchport.check.notebook import read_cells
from torchport.check.parallel import check_files
from torchport.check.parsing import Unreadable
from torchport.check.rewrite import rewrite
from torchport.check.rule import LoadedRule
from torchport.check.rules import rules
from torchport.check.select import UnknownRule, choose
from torchport.check.siblings import Siblings
from torchport.check.texts import MOST_CHARACTERS
from torchport.check.words import words
from torchport.config import Config, ConfigError
from torchport.finding import Finding, Severity
from torchport.project import Project, find_project
from torchport.survey import Kind, Known, Problem, Read, Survey
from torchport.text import _, language

BASELINE = "torchport-baseline.json"
_CELL = re.compile(r"(?P<path>.+\.ipynb) cell \[(?P<number>\d+)\]", re.DOTALL)


class PathMissing(Exception):
    """A path that is to be checked and is not there."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; None takes the project's configuration, then the default. ``fix`` repairs what is
    safe, ``unsafe`` all; with ``diff`` nothing is written.
    """

    paths: tuple[str, ...] = ()
    fix: bool = False
    unsafe: bool = False
    diff: bool = False
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    baseline: str | None = None
    write_baseline: bool = False


@dataclass(frozen=True, slots=True)
class _File:
    """A file by the name that users see, and its bytes."""

    name: str
    path: Path
    data: bytes


@dataclass(slots=True)
class _State:
    """What is known of the files while repairs change them."""

    checked: dict[str, Checked]
    problems: list[Problem] = field(default_factory=list)
    fixed: list[Finding] = field(default_factory=list)
    taken_back: list[Finding] = field(default_factory=list)
    written: dict[str, bytes] = field(default_factory=dict)
    diff: str = ""


def check(request: Request, *, folder: Path) -> Survey:
    """Checks the files and returns what was found; nothing of theirs is imported or run.

    Raises PathMissing, UnknownRule, ConfigError and BaselineError for what the user wrote.
    """
    started = time.perf_counter()
    paths = [Path(os.path.normpath(folder / path)) for path in request.paths or (".",)]
    for path, asked in zip(paths, request.paths or (".",), strict=True):
        if not path.exists():
            raise PathMissing(_("{path}: there is no such file or folder").format(path=asked))
    project = find_project(paths[0].resolve(), folder.resolve(), Path.home())
    settings = config.load(project.root)
    chosen = _chosen(request, settings, project)
    torch = _torch(settings, project)
    name, known = _baseline(request, settings, project, folder)
    found, unread = _read(paths, settings.exclude or (), folder)
    siblings = Siblings(folder, project.root)
    state = _State(_checked(found, torch, project, siblings), unread)
    ids = {each.rule.id for each in chosen}

    def shown(path: str) -> str:  # the name by which a baseline knows a file
        return os.path.relpath(os.path.join(folder, path), project.root).replace(os.sep, "/")

    def unknown(findings: Sequence[Finding], read: Read) -> list[Finding]:
        return baseline.apart([each for each in findings if each.id in ids], known, read, shown)[0]

    read = reader(folder)
    if request.fix or request.unsafe or request.diff:
        for file in found:
            if unknown(state.checked[file.name].findings, read):
                mended = mend(
                    file.name,
                    file.data,
                    lambda source: unknown(check_source(source, torch, chosen, []), lambda path: source.text),
                    request.unsafe,
                    siblings,
                )
                _keep(file, mended, request.diff, state)
    # Once all is written: what is found in a file may rest on another.
    after = Siblings(folder, project.root)
    for name, data in state.written.items():
        state.checked[name] = check_file(name, data, torch, siblings=after)
    findings = [each for file in found for each in state.checked[file.name].findings if each.id in ids]
    if request.write_baseline:
        name, known = name or _name(project.root / BASELINE, folder), Counter()
        try:
            rewrite(folder / name, baseline.written(findings, read, shown).encode("utf-8"))
        except OSError as error:
            raise BaselineError(f"{name}: {error.strerror}") from None
    fresh, left = baseline.apart(findings, known, read, shown)
    return Survey(
        files=len(found),
        lines=sum(checked.lines for checked in state.checked.values()),
        findings=() if request.write_baseline else tuple(fresh),
        problems=tuple(state.problems + [each for one in state.checked.values() for each in one.problems]),
        kinds={each.rule.id: kind(each) for each in chosen},
        fixed=tuple(state.fixed),
        taken_back=tuple(state.taken_back),
        diff=state.diff if request.diff else None,
        known=len(findings) if request.write_baseline else len(findings) - len(fresh),
        unused=_unused(left, {shown(file.name) for file in found}, ids, project),
        baseline=name,
        torch=torch,
        seconds=time.perf_counter() - started,
    )


def exit_code(survey: Survey, fail_on: Severity = Severity.WARNING) -> int:
    """The exit code of contract.md: 0 or 1. A file that could not be checked counts as a warning."""
    bad = any(finding.severity >= fail_on for finding in survey.findings)
    return int(bad or (bool(survey.problems) and fail_on <= Severity.WARNING))


def kind(loaded: LoadedRule) -> Kind:
    """A rule in words."""
    rule, said = loaded.rule, words(loaded)
    return Kind(rule.id, rule.name, rule.severity, rule.confidence, said.title, " ".join(said.why))


def reader(folder: Path) -> Read:
    """Gives the text of a file, or of a notebook's cell, by the name that findings have for it."""

    def read(path: str) -> str | None:
        cell = _CELL.fullmatch(path)
        try:
            data = (folder / (cell["path"] if cell else path)).read_bytes()
            if cell:
                cells = read_cells(data.decode("utf-8-sig"))
                return next((each.text for each in cells if each.number == int(cell["number"])), None)
            return decode(data, "" if files.kind_of(path) in ("", "python") else "utf-8-sig")
        except (OSError, UnicodeDecodeError, Unreadable):
            return None

    return read


def _chosen(request: Request, settings: Config, project: Project) -> tuple[LoadedRule, ...]:
    """Options go before the configuration, which may name what other commands find."""
    try:
        mine = [
            [word for word in words if not re.fullmatch(r"[RDE]\d*", word)] if words else None
            for words in (settings.select, settings.ignore)
        ]
        chosen = choose(rules(), mine[0] or None, mine[1])
    except UnknownRule as error:
        where = _("{path}: [tool.torchport]").format(path=project.root / "pyproject.toml")
        raise UnknownRule(f"{where} {error.name}", error.nearest) from None
    if request.select is None and request.ignore is None:
        return chosen
    select = request.select if request.select is not None else mine[0] or None
    return choose(rules(), select, request.ignore if request.ignore is not None else mine[1])


def _torch(settings: Config, project: Project) -> tuple[int, int] | None:
    if settings.torch is None:
        return target.of_project(project.root)
    version = target.parse(settings.torch)
    if version is None:
        where = f"{project.root / 'pyproject.toml'}: [tool.torchport]"
        raise ConfigError(
            _('{where} torch = {value!r}: a version such as "2.6" is needed').format(where=where, value=settings.torch)
        )
    return version


def _baseline(request: Request, settings: Config, project: Project, folder: Path) -> tuple[str, Counter[Known]]:
    """The baseline's name and what it knows; a new one is empty."""
    path = folder / request.baseline if request.baseline else None
    if path is None and settings.baseline:
        path = project.root / settings.baseline
    if path is None:
        return "", Counter()
    name = _name(path, folder)
    return name, Counter() if request.write_baseline else baseline.read(path, name)


def _read(paths: Sequence[Path], exclude: Sequence[str], folder: Path) -> tuple[list[_File], list[Problem]]:
    """The files, each once however it is reached, and those that cannot be read."""
    found: dict[str, _File] = {}
    problems: list[Problem] = []
    for path in (each for start in paths for each in files.find(start, exclude)):
        name, real = _name(path, folder), os.path.realpath(path)
        if real in found:
            continue
        kind = files.kind_of(name) or "python"
        most = {"python": files.MOST_BYTES, "notebook": files.MOST_NOTEBOOK_BYTES}.get(kind, MOST_CHARACTERS)
        try:
            if not path.is_file():
                problems.append(Problem(name, _("not a file")))
                continue
            if path.stat().st_size > most:
                if kind in ("python", "notebook"):
                    problems.append(Problem(name, _("too large to be written by hand")))
                continue
            found[real] = _File(name, path, path.read_bytes())
        except OSError as error:
            problems.append(Problem(name, error.strerror or str(error)))
    return list(found.values()), problems


def _name(path: Path, folder: Path) -> str:
    """A path as seen from the working directory, where it lies below it."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return path.as_posix()


def _checked(
    found: Sequence[_File], torch: tuple[int, int] | None, project: Project, siblings: Siblings
) -> dict[str, Checked]:
    """What each file gives, from the cache where it has not changed."""
    cache = Cache(project.root, torch, language(), siblings)
    checked = {file.name: cache.get(file.name, file.data) for file in found}
    fresh = [file for file in found if checked[file.name] is None]
    results = check_files([(file.name, file.data) for file in fresh], torch, language(), siblings)
    for file, result in zip(fresh, results, strict=True):
        cache.put(file.name, file.data, result)
        checked[file.name] = result
    cache.save()
    return {name: result for name, result in checked.items() if result is not None}


def _keep(file: _File, mended: Mended, diff: bool, state: _State) -> None:
    """Writes a repaired file, or notes the difference."""
    state.taken_back += mended.taken_back
    if mended.data == file.data:
        return
    if diff:
        state.diff += mended.diff
    else:
        try:
            rewrite(file.path, mended.data)
        except OSError as error:
            said = _("the repairs could not be written: {error}").format(error=error.strerror)
            state.problems.append(Problem(file.name, said))
            return
        state.written[file.name] = mended.data
    state.fixed += mended.fixed


def _unused(left: Counter[Known], checked: set[str], ids: set[str], project: Project) -> tuple[Known, ...]:
    """What a baseline lists and nobody found, of files that were checked or are gone."""
    unused = (
        what
        for what in left.elements()
        if what.id in ids and (what.path in checked or not (project.root / what.path).exists())
    )
    return tuple(sorted(unused, key=lambda what: (what.path, what.id, what.code)))

"""Stack: what the project wants and what the target can run become one stack, locked with hashes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchport import config, mirrors
from torchport.check import files
from torchport.check.appeared import versions_needed
from torchport.check.engine import read_source
from torchport.check.source import Source
from torchport.config import Config
from torchport.facts import Facts, TorchFacts
from torchport.hardware.gpus import UnknownGpu
from torchport.launch import interpreter, machine
from torchport.mirrors import Mirrors
from torchport.plan import Stack
from torchport.project import find_project
from torchport.resolved import Asked, Compared, Gate, Locked, Reason, Resolved, Target, Wanted
from torchport.stack import lockfile, uv
from torchport.stack.cards import card
from torchport.stack.drift import drifts, here
from torchport.stack.free import free_torch
from torchport.stack.judge import reason
from torchport.stack.lock import disagreements, lock
from torchport.stack.lockfile import LockError
from torchport.stack.read import read
from torchport.stack.releases import CPU, Table, dotted, table
from torchport.stack.solve import solve
from torchport.stack.uv import LockFailed, NoSolution, UvMissing
from torchport.stack.versions import is_specifier
from torchport.text import _

_PROCESSORS = ("x86_64", "aarch64")


class RequestError(Exception):
    """An option, or a setting, that cannot be meant."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; None takes the project's configuration, then this machine, then what fits best."""

    path: str = "."
    gpu: str | None = None
    driver: str | None = None
    cuda: str | None = None
    torch: str | None = None
    strict: bool = False
    offline: str | None = None


@dataclass(frozen=True, slots=True)
class _Here:
    """The project, and the machine that we are on."""

    root: Path
    settings: Config
    facts: Facts
    python: TorchFacts | None


def stack(request: Request, *, folder: Path, environ: Mapping[str, str]) -> Locked:
    """Chooses a stack, locks it, and writes it beside the others in the project's torchport.lock.

    Where nothing fits, or uv cannot lock what does, nothing is written, and the result says why. Raises RequestError,
    UnknownGpu, ConfigError, MirrorError and LockError for what the user wrote.
    """
    started = time.perf_counter()
    known, place = table(), _here(request, folder, environ)
    path = place.root / lockfile.FILE
    before = lockfile.read(path.read_text(encoding="utf-8"), path.name) if path.is_file() else ()
    offline = _offline(request, folder)
    chosen_mirrors = mirrors.chosen(place.settings.mirrors or {}, place.root)
    wanted, target = _wanted(request, place), _target(request, place, known)
    resolved = _noted(solve(wanted, target, known), request, place, chosen_mirrors.untested)
    if resolved.stack is None:
        return Locked(resolved, None, str(path), exit_code=1, seconds=time.perf_counter() - started)
    try:
        resolved, done = _locked(resolved, known, chosen_mirrors, offline)
    except (UvMissing, LockFailed, NoSolution) as error:
        code = 1 if isinstance(error, NoSolution) else 3
        return Locked(
            resolved, None, str(path), failure=str(error), exit_code=code, seconds=time.perf_counter() - started
        )
    path.write_text(lockfile.write(lockfile.together(before, done)), encoding="utf-8")
    return Locked(
        resolved,
        done,
        str(path),
        tuple(each.name for each in before if each.name != done.name),
        _changed(next((each for each in before if each.name == done.name), None), done),
        disagreements(resolved.stack, done) if resolved.stack else (),
        seconds=time.perf_counter() - started,
    )


def _locked(resolved: Resolved, known: Table, chosen: Mirrors, offline: Path | None) -> tuple[Resolved, Stack]:
    """The closure of the stack that was chosen; of another torch, where a requirement of the project wants that."""
    wanted, started = resolved.wanted, uv.command()
    asked = (*wanted.asked, *(Asked(name, name, where) for name, where in wanted.imported))
    assert resolved.stack is not None
    try:
        return resolved, lock(resolved.stack, asked, known, uv=started, mirrors=chosen, offline=offline)
    except NoSolution as error:
        # uv says which torch it would take, if it may choose.
        try:
            other = free_torch(resolved.stack, asked, uv=started, mirrors=chosen, offline=offline)
        except NoSolution:
            raise error from None
        again = replace(wanted, asked=(*wanted.asked, Asked("torch", f"torch=={other}", "uv")))
        second = solve(again, resolved.target, known)
        if second.stack is None or other == resolved.stack.torch:
            raise
    held = reason("held", torch=other, before=resolved.stack.torch)
    resolved = replace(second, wanted=wanted, notes=(held, *second.notes))
    done = lock(second.stack, asked, known, uv=started, mirrors=chosen, offline=offline)
    return resolved, replace(done, requirements=tuple(each.text for each in wanted.asked))


def check(request: Request, *, folder: Path, environ: Mapping[str, str]) -> Compared:
    """Holds torchport.lock against the project, its interpreter and this machine; changes nothing.

    Raises LockError where there is no lock, and as ``stack`` does for what the user wrote.
    """
    known, place = table(), _here(request, folder, environ)
    path = place.root / lockfile.FILE
    if not path.is_file():
        raise LockError(_("{path}: there is no lock yet. Make one with: torchport stack").format(path=path))
    stacks = lockfile.read(path.read_text(encoding="utf-8"), path.name)
    target = _target(request, place, known)
    wanted = _wanted(request, place)
    compared = here(stacks, target, gpu=target.cuda != CPU)
    have = interpreter.installed(place.python.python) if place.python else None
    if len(compared) > 1:  # one interpreter cannot be all of them: it is held against the one it is nearest to
        compared = tuple(each for each in compared if _is_installed(each, place.python)) or compared
    found = tuple((each, drifts(each, wanted, target, known, have)) for each in compared)
    elsewhere = tuple(each.name for each in stacks if each not in compared)
    code = int(not found or any(each for _stack, each in found))
    return Compared(str(path), found, elsewhere, place.python.python if place.python else None, code)


def _is_installed(stack: Stack, python: TorchFacts | None) -> bool:
    if python is None or python.version is None:
        return False
    tag = CPU if python.cuda is None else "cu" + python.cuda.replace(".", "")
    return stack.backend == tag


def _here(request: Request, folder: Path, environ: Mapping[str, str]) -> _Here:
    start = folder / request.path
    if not start.exists():
        raise RequestError(_("{path}: there is no such file or folder").format(path=request.path))
    root = find_project(start.resolve(), folder.resolve(), Path.home()).root
    if start.is_dir() and request.path != ".":
        root = start.resolve()
    settings = config.load(root)
    facts = Facts(machine.host(), None, machine.real_gpus(), machine.driver())
    return _Here(root, settings, facts, _python(settings, root, environ))


def _python(settings: Config, root: Path, environ: Mapping[str, str]) -> TorchFacts | None:
    """The interpreter that the project has: as configured, of its own folder, or the active environment."""
    named = [interpreter.executable(settings.python, root)] if settings.python else []
    named += [str(root / name / "bin" / "python") for name in (".venv", "venv")]
    named += [
        str(Path(environ[name], "bin", "python")) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(name)
    ]
    for python in named:
        if Path(python).exists():
            try:
                return interpreter.probe(python)
            except interpreter.InterpreterError:
                continue
    return None


def _offline(request: Request, folder: Path) -> Path | None:
    if request.offline is None:
        return None
    place = (folder / request.offline).resolve()
    if not place.is_dir():
        raise RequestError(_("--offline {path}: there is no such folder").format(path=request.offline))
    if not any(place.glob("*.whl")):
        raise RequestError(_("--offline {path}: there is no wheel in it").format(path=request.offline))
    return place


def _wanted(request: Request, place: _Here) -> Wanted:
    """What the files say, what the source needs of torch's interface, and the user's own word."""
    wanted = replace(read(place.root), api=tuple(_gates(place.root, place.settings)))
    word = request.torch or place.settings.torch
    if word is None:
        return wanted
    where = "--torch" if request.torch else "[tool.torchport] torch"
    text = f"=={word}" if re.fullmatch(r"\d+(\.\d+)*(\+\w+)?", word) else word
    text = f"{text}.*" if re.fullmatch(r"==\d+(\.\d+)?", text) else text
    if not is_specifier(text):
        raise RequestError(
            _('{where} {value!r}: a version such as 2.9, or bounds such as ">=2.6,<2.10", are needed').format(
                where=where, value=word
            )
        )
    return replace(wanted, asked=(*wanted.asked, Asked("torch", f"torch{text}", where)))


def _gates(root: Path, settings: Config) -> Iterator[Gate]:
    seen = set()
    for path in files.find(root, settings.exclude or ()):
        if path.suffix != ".py" or path.stat().st_size > files.MOST_BYTES:
            continue
        name = path.relative_to(root).as_posix()
        source, _problems = read_source(name, path.read_bytes())
        for use in versions_needed(source) if isinstance(source, Source) else ():
            if use.name not in seen:
                seen.add(use.name)
                yield Gate(use.name, f"{name}:{use.line}", use.since, use.gone)


def _target(request: Request, place: _Here, known: Table) -> Target:
    """The user's word, then the configuration, then this machine; without a card anywhere it is the CPU."""
    named = request.gpu or place.settings.gpu
    ours = next((name for name in place.facts.gpus or () if not name.startswith("/")), None)
    cuda = _cuda(request.cuda, known)
    if cuda is None and not (named or request.driver or place.facts.gpus):
        cuda = CPU
    driver = request.driver
    if driver is not None and not re.fullmatch(r"\d{3}(\.\d+){0,2}", driver):
        raise RequestError(_("--driver {value}: a version such as 535.104.05 or 580 is needed").format(value=driver))
    host = place.facts.host.machine
    processor = host if host in _PROCESSORS and place.facts.host.system == "Linux" else _PROCESSORS[0]
    python = dotted(place.python.python_version[:2]) if place.python else None
    target = Target(f"linux-{processor}", None, None, driver, cuda, request.strict, python)
    if named:
        found = card(named, known)
        return replace(
            target, platform=f"linux-{found.processor or 'x86_64'}", gpu=found.name, capability=found.capability
        )
    if ours is None and not place.facts.gpus:
        return target
    driver = driver or (place.facts.driver.version if place.facts.driver else None)
    try:
        capability = card(ours or "", known).capability
    except UnknownGpu:
        capability = machine.capability() or ""
    return replace(target, gpu=ours, capability=capability or None, driver=driver)


def _cuda(word: str | None, known: Table) -> str | None:
    """ "12.6", "cu126" and "126" are the same."""
    if word is None or word.lower() == CPU:
        return word and CPU
    digits = word.lower().removeprefix("cu").replace(".", "")
    if not re.fullmatch(r"\d{2,3}", digits) or not re.fullmatch(r"(?i)cu\d+|\d+(\.\d+)?", word):
        raise RequestError(
            _("--cuda {value}: 12.6, cu126 or cpu are understood; torch was built for {tags}").format(
                value=word, tags=" ".join(known.tags)
            )
        )
    if "." not in word and len(digits) == 2:  # "12": any of them would do, and none is meant
        raise RequestError(_("--cuda {value}: which one of {value}.x?").format(value=word))
    return f"{digits[:-1]}.{digits[-1]}"


def _noted(resolved: Resolved, request: Request, place: _Here, untested: tuple[str, ...]) -> Resolved:
    """The notes that are about how it was asked, not about the choice."""
    notes: list[Reason] = []
    if resolved.target.cuda == CPU and request.cuda is None:
        notes.append(reason("cpu-default"))
    if all(each.name != "torch" for each in resolved.wanted.asked):
        notes.append(reason("torch-imported" if dict(resolved.wanted.imported).get("torch") else "torch-not-asked"))
    if resolved.wanted.imported and not resolved.wanted.asked:
        names = " ".join(name for name, _path in resolved.wanted.imported)
        notes.append(reason("from-imports", names=names, unknown=" ".join(resolved.wanted.unknown)))
    notes += [reason("mirror-untested", name=name) for name in untested]
    return replace(resolved, notes=(*notes, *resolved.notes))


def _changed(before: Stack | None, now: Stack) -> tuple[tuple[str, str, str], ...] | None:
    """Which packages have another version than when it was locked last; one whose files alone are others, too."""
    if before is None:
        return None
    old = {package.name: package for package in before.packages}
    new = {package.name: package for package in now.packages}
    changes = []
    for name in sorted({*old, *new}):
        was, now_is = old.get(name), new.get(name)
        if was is None or now_is is None or was.version != now_is.version:
            changes.append((name, was.version if was else "", now_is.version if now_is else ""))
        elif set(was.hashes) != set(now_is.hashes):
            changes.append((name, was.version, now_is.version))
    return tuple(changes)

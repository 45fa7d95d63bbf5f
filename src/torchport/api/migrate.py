"""Migrate: the user's project on a GPU, with proof. Works on a copy; the patch is the result."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from torchport import process
from torchport.api import git
from torchport.api.entry import Entry, find_entry, imported_from, of_copy, python_of
from torchport.api.rehearse import Request as Rehearsal
from torchport.api.rehearse import rehearse
from torchport.check.rewrite import rewrite
from torchport.migrate import loop
from torchport.migrate.adopt import adopt
from torchport.migrate.apply import Busy, Edited, apply, recover
from torchport.migrate.loop import Migration, said
from torchport.migrate.recipe import Launch, Runner
from torchport.migrate.recipes import chosen
from torchport.migrate.tree import Tree, copy
from torchport.migrated import Adopted, Migrated
from torchport.plan import Run
from torchport.text import _

PATCH = "torchport.patch"
# Runs are compared: one that sets no seed would draw other numbers each time.
_SEED = 0
_SHOWN_FILES = 3


class NotClean(Exception):
    """A project that is not as it is committed, or not as it was: applying would mix that up with ours."""


class TooLong(Exception):
    """A run that ``timeout_s`` has ended."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; ``entry`` is the program with its arguments."""

    path: str = "."
    entry: str = ""
    apply: bool = False
    recipes: tuple[str, ...] = ()
    steps: int | None = None
    timeout_s: float | None = None
    python: str | None = None
    gpu: str | None = None
    gpus: int | None = None


def migrate(
    request: Request,
    *,
    folder: Path,
    environ: Mapping[str, str],
    tell: Callable[[str], None] = lambda step: None,
    warn: Callable[[str], None] = lambda line: None,
) -> Migrated:
    """Migrates a project. ``warn`` gets sentences that the user has to read.

    Raises what ``rehearse`` raises, NotClean, TooLong, ValueError for an unknown recipe, OSError where the disk has no
    room, and KeyboardInterrupt for each signal that asks to stop; the project is then as it was.
    """
    started = time.monotonic()
    recipes = chosen(request.recipes)
    entry = find_entry(request.path, request.entry, folder)
    python = python_of(entry, request.python, folder, environ)
    _recover(entry.project, warn)
    if request.apply:
        _refuse_unclean(entry.project)
    with _stopped_by_signals(), _scratch() as scratch:
        root = scratch / (entry.project.name or "project")
        root.mkdir()
        (root / ".git").mkdir()  # the copy is a project of its own, wherever it lies
        tree = copy(entry.project, root, entry.path)
        run = _runner(request, entry, tree, python, environ)
        migration = loop.migrate(tree, entry.path, run, tell)
        adopted = adopt(migration, recipes, entry.path, run, tell, lambda package: _has(migration, package))
        patch, changed = tree.patch(), tree.changed()
        applied = bool(request.apply and changed)
        target, backup = "", None
        if patch and not applied:
            target = _write_patch(entry.project, _bytes(patch))
        if applied:
            try:
                backup = _apply(entry.project, tree.original, changed)
            except (NotClean, OSError):
                with suppress(OSError):  # what was worked out is not lost
                    warn(_("not applied; the patch is {path}").format(path=_write_patch(entry.project, _bytes(patch))))
                raise
    return _told(migration, adopted, request.entry, patch, target, applied, backup, started)


def _runner(request: Request, entry: Entry, tree: Tree, python: str, environ: Mapping[str, str]) -> Runner:
    """How the copy is run. A project that is installed in place runs itself, and then again so that its copy runs."""
    also: list[Path] = []

    def run(copied: Path, launch: Launch) -> Run:
        if not launch.keep:
            tree.forget()
        ranks = ("torchrun", "--nproc-per-node", str(launch.ranks)) if launch.ranks else ()
        asked = Rehearsal(
            words=(*ranks, *entry.words, *launch.words),
            gpu=request.gpu,
            gpus=launch.ranks or request.gpus,
            steps=launch.steps or request.steps,
            timeout_s=request.timeout_s,
            strict=launch.strict,
            plain=launch.plain,
            seed=_SEED,
            python=python,
        )
        with open(os.devnull, "wb") as nowhere:
            done = rehearse(
                asked,
                folder=tree.folder / entry.folder,
                environ={**of_copy(environ, entry, tree.folder, also), **dict(launch.env)},
                output=nowhere.fileno(),
                apart=True,
            )
        if done.exit_code == 130:
            raise KeyboardInterrupt
        if any((record.exit or {}).get("reason") == "timeout" for record in done.records):
            raise TooLong(_("a run took longer than --timeout allows: give it more, or fewer --steps"))
        found = [each for each in imported_from(done, entry.project) if each not in also]
        also.extend(found)
        return run(copied, launch) if found else done

    return run


def _told(
    migration: Migration,
    adopted: list[Adopted],
    entry: str,
    patch: str,
    path: str,
    applied: bool,
    backup: str | None,
    started: float,
) -> Migrated:
    """What users see of a migration."""
    confirmed, unreached, only_run = migration.seen()
    records = migration.last.records if migration.last else ()
    draws = {(str(site), operator) for record in records for site, operator, _count in record.draws if site}
    stopped = migration.last is not None and loop.failed(migration.last)
    code = (
        0
        if migration.clean
        else 5
        if migration.last and migration.last.exit_code == 5
        else 4
        if stopped and not migration.left
        else 1
    )
    return Migrated(
        entry=entry,
        patch=patch,
        patch_path=path,
        applied=applied,
        backup=backup,
        clean=migration.clean,
        works_on_cpu=migration.reference is not None and not loop.failed(migration.reference),
        gave_device=migration.gave_device,
        used_gpu=migration.used_gpu,
        confirmed=tuple(confirmed),
        unreached=tuple(unreached),
        only_run=tuple(only_run),
        left=tuple(migration.left),
        refused=tuple(f"{each.kind} at {each.observation.site}" for each in migration.refused),
        repaired=(
            *migration.revived,
            *(f"{each.id} at {each.location}" for each in migration.read_repaired),
            *(f"{each.kind} at {each.observation.site}" for each in migration.applied),
        ),
        on_gpu=migration.on_gpu,
        on_cpu=migration.on_cpu,
        draws=tuple(sorted(draws)),
        recipes=tuple(adopted),
        rounds=migration.rounds,
        gpus=migration.last.plan.gpus_per_node if migration.last else 1,
        ranks=migration.last.plan.processes if migration.last else 1,
        by_rehearsal=migration.by_rehearsal,
        failure=said(migration.last) if stopped and migration.last else "",
        exit_code=code,
        seconds=time.monotonic() - started,
    )


def _has(migration: Migration, package: str) -> bool:
    """Whether the interpreter that ran the program finds a package."""
    python = migration.last.plan.python if migration.last else sys.executable
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return process.run([python, "-c", code]).code == 0


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="torchport-migrate-")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """The signals that ask us to stop do what Ctrl-C does: what was begun is put in order first."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_unclean(project: Path) -> None:
    dirty = git.changed(project, but=PATCH)
    if dirty:
        more = len(dirty) - _SHOWN_FILES
        files = ", ".join(dirty[:_SHOWN_FILES]) + (f", +{more}" if more > 0 else "")
        raise NotClean(
            _(
                "{project} has changes that are not committed ({files}): commit or stash them, or leave out --apply"
            ).format(project=project, files=files)
        )


def _recover(project: Path, warn: Callable[[str], None]) -> None:
    """Puts back what an earlier --apply left half done, and says so."""
    try:
        found = recover(project)
    except Busy as error:
        raise NotClean(_busy().format(path=error)) from None
    if found is None:
        return
    backup = str(found.backup)
    if found.restored:
        files = ", ".join(found.restored)
        warn(_("an earlier --apply was killed half-way; put back as they were: {files}").format(files=files))
    else:
        warn(_("an earlier --apply was killed before it changed anything"))
    if found.edited:
        files = ", ".join(found.edited)
        warn(_("changed since, and left alone: {files}; as they were: {backup}").format(files=files, backup=backup))


def _apply(project: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str | None:
    """Changes the files; what was there is kept in a folder, unless git has it."""
    try:
        kept = apply(project, before, after, time.strftime("%Y%m%d-%H%M%S"))
    except Edited as error:
        raise NotClean(
            _("{path} has changed while it was migrated: nothing was applied; start again").format(path=error)
        ) from None
    except Busy as error:
        raise NotClean(_busy().format(path=error)) from None
    if git.keeps(project, after):
        shutil.rmtree(kept, ignore_errors=True)
        return None
    return str(kept)


def _busy() -> str:
    return _("{path}: another torchport migrate is changing the files; if there is none, remove that file")


def _bytes(patch: str) -> bytes:
    return patch.encode("utf-8", "surrogateescape")


def _write_patch(project: Path, patch: bytes) -> str:
    """The patch in the project; where that cannot be written, among temporary files."""
    try:
        rewrite(project / PATCH, patch)
        return str(project / PATCH)
    except PermissionError:
        pass
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    target = Path(tempfile.mkdtemp(prefix="torchport-")) / PATCH
    rewrite(target, patch)
    return str(target)

"""Migrate: the user's project on a GPU, with proof. Works on a copy; the patch is the result."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchport.api.rehearse import Request as Rehearsal
from torchport.api.rehearse import rehearse
from torchport.launch.program import ProgramError, parse
from torchport.migrate import loop
from torchport.migrate.adopt import adopt, said
from torchport.migrate.loop import Migration
from torchport.migrate.recipe import Launch
from torchport.migrate.recipes import chosen
from torchport.migrate.tree import copy
from torchport.migrated import Adopted, Migrated
from torchport.plan import Run
from torchport.project import find_project
from torchport.text import _

PATCH = "torchport.patch"
# Runs are compared: one that sets no seed would draw other numbers each time.
_SEED = 0


class NotClean(Exception):
    """A tree with changes that are not committed: applying would mix them up with ours."""


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


def migrate(
    request: Request,
    *,
    folder: Path,
    environ: Mapping[str, str],
    tell: Callable[[str], None] = lambda step: None,
) -> Migrated:
    """Migrates a project. Raises what ``rehearse`` raises, NotClean, and ValueError for a recipe unknown."""
    started = time.monotonic()
    recipes = chosen(request.recipes)
    place = (folder / request.path).resolve()
    if not place.is_dir():
        raise ProgramError(_("{path}: there is no such folder").format(path=request.path))
    words = tuple(shlex.split(request.entry))
    if not words:
        raise ProgramError(_('--entry is missing: the program to migrate, as in --entry "train.py --epochs 1"'))
    program = parse(words, place)
    project = find_project(place / program.argv[0], place, Path.home()).root
    if request.apply:
        _refuse_unclean(project)
    with _scratch() as scratch:
        root = scratch / project.name
        root.mkdir()
        tree = copy(project, root)
        inside = root / place.relative_to(project)
        entry = (inside / program.argv[0]).relative_to(root).as_posix()

        def run(copied: Path, launch: Launch) -> Run:
            if not launch.keep:
                tree.forget()
            ranks = ("torchrun", "--nproc-per-node", str(launch.ranks)) if launch.ranks else ()
            with open(os.devnull, "wb") as nowhere:
                return rehearse(
                    Rehearsal(
                        words=(*ranks, *words, *launch.words),
                        gpu=request.gpu,
                        steps=launch.steps or request.steps,
                        timeout_s=request.timeout_s,
                        strict=launch.strict,
                        plain=launch.plain,
                        seed=_SEED,
                        python=_absolute(request.python, folder),
                    ),
                    folder=inside,
                    environ={"PYTHONHASHSEED": "0", **environ, **dict(launch.env)},
                    output=nowhere.fileno(),
                    apart=True,
                )

        migration = loop.migrate(tree, entry, run, tell)
        adopted = adopt(migration, recipes, entry, run, tell)
        patch = tree.patch()
        changed = tree.changed()
    target = project / PATCH
    backup = None
    if request.apply and changed:
        backup = _apply(project, changed)
    elif patch:
        _write(target, patch.encode("utf-8", "surrogateescape"))
    return _told(
        migration, adopted, request.entry, patch, str(target), bool(request.apply and changed), backup, started
    )


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
    code = 0 if migration.clean else 4 if stopped and not migration.left else 1
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
        failure=said(migration.last) if stopped and migration.last else "",
        exit_code=code,
        seconds=time.monotonic() - started,
    )


def _absolute(python: str | None, folder: Path) -> str | None:
    return str((folder / python).absolute()) if python and os.sep in python else python


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="torchport-migrate-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _refuse_unclean(project: Path) -> None:
    if not (project / ".git").exists() or shutil.which("git") is None:
        return
    done = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True)
    dirty = [line for line in done.stdout.splitlines() if not line.endswith(PATCH)]
    if dirty:
        raise NotClean(
            _("{project} has changes that are not committed: commit or stash them, or leave out --apply").format(
                project=project
            )
        )


def _apply(project: Path, changed: Mapping[str, bytes]) -> str | None:
    """Writes the changed files, all or none; outside of git what was there is kept in a folder."""
    backup: str | None = None
    before = {path: (project / path).read_bytes() for path in changed}
    if not (project / ".git").exists():
        kept = project / ".torchport" / "backup" / time.strftime("%Y%m%d-%H%M%S")
        for path, data in before.items():
            (kept / path).parent.mkdir(parents=True, exist_ok=True)
            (kept / path).write_bytes(data)
        backup = str(kept)
    try:
        for path, data in changed.items():
            _write(project / path, data)
    except BaseException:
        for path, data in before.items():
            _write(project / path, data)
        raise
    return backup


def _write(path: Path, data: bytes) -> None:
    """Writes aside and renames: a file is as before or complete."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(data)
    if path.exists():
        shutil.copymode(path, fresh)
    os.replace(fresh, path)

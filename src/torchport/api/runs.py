"""The runs that there are: listed, found, stopped, and the lines that they write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchport.facts import Card
from torchport.launch import cards as cards_of
from torchport.launch.cards import CardsUnknown
from torchport.launch.job import first_failure
from torchport.launch.logs import Growing, first_words, rank_logs, settled
from torchport.launch.run_folder import LATEST, RunMissing, find_run
from torchport.launch.standing import Standing, running_folders, runs_of, standing
from torchport.launch.stop import stop as stop_run
from torchport.project import find_project
from torchport.text import _

LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Seen:
    """A run on this machine whose folder we may not read: all that the system shows of it."""

    folder: str
    pid: int
    user: str | None


@dataclass(frozen=True, slots=True)
class Machine:
    """What runs on this machine. ``cards`` is empty where there are none, None where the driver does not answer."""

    runs: tuple[Standing, ...]
    hidden: tuple[Seen, ...]
    cards: tuple[Card, ...] | None


def project_runs(folder: Path) -> tuple[Standing, ...]:
    """The runs of the project that a folder lies in, oldest first."""
    return tuple(runs_of(_project(folder), time.time()))


def machine_runs() -> Machine:
    """The runs of all projects and users that live on this machine, and who computes on its cards."""
    from torchport.launch import tree

    found: dict[str, Standing] = {}
    hidden: dict[str, Seen] = {}
    for place, pid in running_folders():
        try:
            if str(place) not in found:
                found[str(place)] = standing(place, time.time())
        except RunMissing:
            hidden.setdefault(str(place), Seen(str(place), pid, tree.owner(pid)))
    try:
        cards = cards_of.peek(cards_of.look()[1])
    except CardsUnknown:
        cards = None
    living = [run for run in found.values() if run.alive]
    return Machine(tuple(sorted(living, key=lambda run: run.started or 0.0)), tuple(hidden.values()), cards)


def find(name: str | None, folder: Path, *, living: bool = False) -> Standing:
    """A run by name, path or "latest", which is also what None means.

    With ``living`` None is the only run that lives. Raises RunMissing, which names those there are.
    """
    project = _project(folder)
    if name is None and living:
        alive = [run for run in runs_of(project, time.time()) if run.alive]
        if len(alive) == 1:
            return alive[0]
        if not alive:
            raise RunMissing(_("nothing runs in {project}").format(project=project))
        names = "\n".join(f"  {run.name}" for run in alive)
        raise RunMissing(_("several runs live, name one of them:") + f"\n{names}")
    return standing(find_run(name or LATEST, project), time.time())


def stop(run: Standing, *, at_once: bool = False) -> Standing:
    """Stops a run. Raises NotStopped."""
    return stop_run(run, at_once=at_once)


def lines(
    run: Standing, *, follow: bool, rank: int | None, last: int | None, sleep: Callable[[float], None] = time.sleep
) -> Iterator[tuple[int, str]]:
    """(rank, line) of what a run has written, and with ``follow`` of what it writes until it ends."""
    place = Path(run.folder)
    growing = Growing(place, rank, last)
    while follow and standing(place, time.time()).phase in ("waiting", "running"):
        yield from ((number, settled(line)) for number, line in growing.look())
        sleep(LOOK_EVERY_S)
    yield from ((number, settled(line)) for number, line in growing.look(last=True))


def failure(folder: str) -> tuple[int | None, tuple[str, ...]] | None:
    """(rank, its last words) of the rank that failed first in a run of several; None where none did by itself.

    The rank is None where torchrun itself failed.
    """
    place = Path(folder)
    if standing(place, time.time()).reason != "error":
        return None
    failed = first_failure(place)
    rank = failed[0] if failed else None
    words = first_words(place, rank, rank_logs(place))
    return (rank, tuple(map(settled, words))) if words else None


def _project(folder: Path) -> Path:
    return find_project(folder, folder, Path.home()).root

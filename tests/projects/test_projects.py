"""Small complete projects: the right one rehearses clean, the faulty one shows every fault at its two lines.

Each folder here is a project as a user writes it, twice. In the faulty copy the comment ``# BORN 2`` stands
on the line that made (or should have moved) the tensor of fault 2, ``# MEET 2 R101 labels`` on the line where
it met the others, with the finding's id and, where the source tells it, the tensor's name.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from torchport.api.rehearse import Request, rehearse
from torchport.finding import Severity
from torchport.hardware.gpus import DEFAULT_GPU
from torchport.launch.engines.rehearse import Rehearse
from torchport.launch.inside_copy import private_folder
from torchport.launch.program import parse
from torchport.launch.supervise import Manner, supervise
from torchport.plan import Plan, Run, VirtualGpus
from torchport.record import Observation, Record, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/project.toml"))
# One thread: sums must not depend on how many cores the machine has.
ENVIRON = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Project:
    """What project.toml says.

    ``entry`` is the command line, ``steps`` and ``losses`` are how many optimizer steps and backward passes
    a rank makes. ``trace`` is "exact" where the losses must be the CPU's bit for bit, else "close";
    ``same_trace`` is false where the faults change what is computed on the CPU, too; ``advice`` lists ids of
    findings that hold for the right project.
    """

    name: str
    entry: tuple[str, ...]
    steps: int
    losses: int
    gpus: int = 1
    ranks: int = 1
    trace: str = "exact"
    same_trace: bool = True
    advice: tuple[str, ...] = ()


def load(name: str) -> Project:
    said = tomllib.loads((HERE / name / "project.toml").read_text(encoding="utf-8"))
    assert said.pop("notes")
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    return Project(name, **{"losses": said["steps"], **said})


def copied(project: Project, kind: str, folder: Path) -> Path:
    """A copy of the project in a folder of its own, as a user has it."""
    return Path(shutil.copytree(HERE / project.name / kind, folder / project.name)).resolve()


def rehearsed(project: Project, kind: str, folder: Path) -> Run:
    place = copied(project, kind, folder)
    with open(folder / "output", "wb") as output:
        request = Request(project.entry, gpus=project.gpus, timeout_s=120, python=sys.executable)
        run = rehearse(request, folder=place, environ=ENVIRON, output=output.fileno())
    assert run.exit_code in (0, 1), (folder / "output").read_text(encoding="utf-8")
    return run


@lru_cache
def cpu_trace(project: Project, kind: str) -> tuple[tuple[float, ...], ...]:
    """The losses of every rank in a plain run on the CPU, as the same recorder writes them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        place = copied(project, kind, folder)
        program = parse(project.entry, place)
        plan = Plan(
            argv=program.argv,
            kind=program.kind,
            python=sys.executable,
            folder=str(place),
            project=str(place),
            gpus_per_node=project.gpus,
            processes=project.ranks,
            launcher=project.ranks > 1,
            virtual=VirtualGpus(DEFAULT_GPU, plain=True),
        )
        (folder / "logs").mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        processes = Rehearse(str(private_folder(ENVIRON, folder)), port, "plain").processes(plan, folder, ENVIRON)
        with open(os.devnull, "wb") as output:
            manner = Manner(output=output.fileno())
            ending = supervise(processes, folder=str(place), environ=ENVIRON, timeout_s=120, manner=manner)
        assert not any(ending.codes)
        return traces(project, [read(process.record_path) for process in processes])


def traces(project: Project, records: Sequence[Record]) -> tuple[tuple[float, ...], ...]:
    """The losses of every rank; a worker process that loads data has none."""
    ranks = [record for record in records if record.losses]
    counts = [(len(rank.losses), len(rank.steps)) for rank in ranks]
    assert counts == [(project.losses, project.steps)] * project.ranks
    assert not any(rank.torn for rank in ranks)
    return tuple(tuple(loss.value for loss in rank.losses) for rank in ranks)


def same(project: Project, kind: str, records: tuple[Record, ...]) -> bool:
    mine, cpu = traces(project, records), cpu_trace(project, kind)
    if project.trace == "exact":
        return mine == cpu
    pairs = [pair for one, two in zip(mine, cpu, strict=True) for pair in zip(one, two, strict=True)]
    return all(math.isclose(a, b, rel_tol=1e-5) for a, b in pairs)


@dataclass(frozen=True)
class Planted:
    """One fault at one place where it shows; ``born`` is None where no single line made the tensor."""

    fault: int
    id: str
    met: str
    born: str | None
    name: str | None


def planted(project: Project) -> list[Planted]:
    """The faults that the comments of the faulty copy tell of."""
    born: dict[int, str] = {}
    met: dict[int, list[tuple[str, str, str | None]]] = defaultdict(list)
    for place, line in _lines(HERE / project.name / "faulty"):
        for fault in re.findall(r"# BORN (\d+)", line):
            assert int(fault) not in born, f"{place}: fault {fault} is born twice"
            born[int(fault)] = place
        for fault, id, name in re.findall(r"# MEET (\d+) (R\d{3})(?: ([^#\s]+))?", line):
            met[int(fault)].append((id, place, name or None))
    assert born.keys() <= met.keys(), "a fault that meets nothing"
    return [Planted(n, id, place, born.get(n), name) for n in sorted(met) for id, place, name in met[n]]


def _lines(folder: Path) -> Iterator[tuple[str, str]]:
    """(place as a record names it, text) of every line of source."""
    for path in sorted(folder.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{path.relative_to(folder)}:{number}", line
    for path in sorted(folder.rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        for count, cell in enumerate(code, 1):
            for number, line in enumerate(cell["source"], 1):
                yield f"{path.relative_to(folder)} cell [{count}]:{number}", line


def shown(observation: Observation) -> tuple[str, str, set[str], str | None]:
    """(id, where it showed, lines that made or moved the offender, the offender's name)."""
    fields = observation.fields
    index = fields.get("offender")
    offender = fields["tensors"][index] if index is not None else {}
    made = {str(offender[key]) for key in ("born", "moved") if offender.get(key) is not None}
    return observation.id, str(observation.site), made, offender.get("name")


@pytest.mark.parametrize("name", NAMES)
def test_right(name: str, tmp_path: Path) -> None:
    project = load(name)
    run = rehearsed(project, "right", tmp_path)
    serious = [f for f in run.findings if f.severity >= Severity.WARNING and f.id not in project.advice]
    assert [f"{finding.location}: {finding.id} {finding.message}" for finding in serious] == []
    assert same(project, "right", run.records)


@pytest.mark.parametrize("name", NAMES)
def test_faulty(name: str, tmp_path: Path) -> None:
    project = load(name)
    run = rehearsed(project, "faulty", tmp_path)
    seen = [o for record in run.records for o in record.findings if o.severity != "info"]
    wanted = planted(project)
    assert wanted

    unplanted = [shown(o) for o in seen if not any(_is(o, one) for one in wanted)]
    missing = [one for one in wanted if not any(_is(o, one) for o in seen)]
    assert (missing, unplanted) == ([], [])
    named = {(one, shown(o)[3]) for one in wanted for o in seen if _is(o, one)}
    assert [one for one in wanted if one.name and (one, one.name) not in named] == []
    # Healed, it computes what it computes on the CPU.
    assert same(project, "right" if project.same_trace else "faulty", run.records)


def _is(observation: Observation, one: Planted) -> bool:
    id, met, made, _ = shown(observation)
    return (id, met) == (one.id, one.met) and (one.born is None or one.born in made)

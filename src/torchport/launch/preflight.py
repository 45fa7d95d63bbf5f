"""Preflight: what would make a run fail, found before anything is spent on it. One problem, one sentence."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchport.facts import Facts
from torchport.plan import Plan
from torchport.text import _, binary_size

FULL_BYTES, SCARCE_BYTES = 64 << 20, 1 << 30
# What Docker gives a container that asks for nothing, and where loaders begin to need more.
SMALL_SHM_BYTES = 64 << 20
_WORKERS = re.compile(r"--?(?:num[-_])?(?:dataloader[-_])?(?:num[-_])?workers|-j")
_DATA = re.compile(r"--?[a-z_-]*(?:data|dataset)[a-z_-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """``stops``: the run would fail for certain, or lose what it computes. The others are only said."""

    text: str
    remedy: str
    stops: bool = True


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run is known to need beside its plan: paths of data, and ports that its services listen on."""

    entry: Path | None = None
    data: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()


def problems(plan: Plan, facts: Facts, needs: Needs, wanted: int, shm: Path = Path("/dev/shm")) -> list[Problem]:
    """All that is wrong, what stops the run first. ``wanted`` is the number of cards, 0 for none."""
    found = [
        *(_torch(facts, wanted) if plan.kind != "command" else ()),
        *_disk(Path(plan.project)),
        *_data(plan, needs.data),
        *_ports(needs.ports),
        *_shared_memory(plan, needs.entry, shm),
    ]
    return sorted(found, key=lambda problem: not problem.stops)


def _torch(facts: Facts, wanted: int) -> Iterator[Problem]:
    """torch against the driver and the cards. Newer CUDA of the same major version runs on an older driver."""
    torch = facts.torch
    if not wanted or torch is None or torch.version is None:
        return
    if torch.cuda is None:
        yield Problem(
            _("torch {version} in {python} is built without CUDA: it cannot use a card").format(
                version=torch.version, python=torch.python
            ),
            _("Install a CUDA build of torch there."),
        )
        return
    built = tuple(int(part) for part in torch.cuda.split(".")[:2])
    if facts.driver and facts.driver.cuda and built[0] > facts.driver.cuda[0]:
        yield Problem(
            _("torch {version} needs CUDA {built}, driver {driver} runs CUDA {newest} at most").format(
                version=torch.version,
                built=torch.cuda,
                driver=facts.driver.version or "?",
                newest=".".join(map(str, facts.driver.cuda)),
            ),
            _("Install a torch built for CUDA {major}, or a newer driver.").format(major=facts.driver.cuda[0]),
        )
    for card in facts.cards or ():
        if card.capability and not supports(built, card.capability):
            yield Problem(
                _("torch {version}, built for CUDA {built}, has no code for {card} (compute capability {have})").format(
                    version=torch.version, built=torch.cuda, card=card.name, have=".".join(map(str, card.capability))
                ),
                _("Install a torch built for CUDA 12.8 or newer.")
                if card.capability >= (10, 0)
                else _("Install a torch built for CUDA 12.6."),
            )
            return


def supports(cuda: tuple[int, ...], capability: tuple[int, int]) -> bool:
    """Whether a torch built with that CUDA has code for a card.

    CUDA 12.8 is the first with Blackwell (10.0 and up), CUDA 13 the first without Maxwell, Pascal and Volta (below
    7.5): NVIDIA's release notes of the two.
    """
    return not (capability >= (10, 0) and cuda < (12, 8)) and not (capability < (7, 5) and cuda >= (13, 0))


def _disk(project: Path) -> Iterator[Problem]:
    try:
        free = shutil.disk_usage(project).free
    except OSError:
        return
    if free < SCARCE_BYTES:
        yield Problem(
            _("{size} are free on the disk of {path}").format(size=binary_size(free), path=project),
            _("Make room: logs and checkpoints go there."),
            stops=free < FULL_BYTES,
        )


def _data(plan: Plan, named: Sequence[str]) -> Iterator[Problem]:
    """Data that is not there: named in the configuration, or by an option for data with a path as its value."""
    folder = Path(plan.folder)
    for path in named:
        if not Path(plan.project, path).expanduser().exists():
            yield Problem(
                _("{path} is not there ([tool.torchport.run] data)").format(path=path), _("Bring the data here.")
            )
    words = list(plan.argv[1:])
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        value = value if equals else (words[number + 1] if number + 1 < len(words) else "")
        # A name with a slash may be one of a hub; these can only be paths.
        if _DATA.fullmatch(option) and value.startswith(("/", "./", "../")) and not (folder / value).exists():
            yield Problem(
                _("{path} is not there ({option})").format(path=value, option=option),
                _("Check the path; if the program makes it itself, add --no-preflight."),
            )


def _ports(ports: Sequence[int]) -> Iterator[Problem]:
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                yield Problem(
                    _("port {port} cannot be used: {error}").format(port=port, error=error.strerror),
                    _("End what listens there, or change [tool.torchport.run] ports."),
                )


def _shared_memory(plan: Plan, entry: Path | None, shm: Path) -> Iterator[Problem]:
    """Loader workers hand batches over in shared memory; where that is small the run dies with a bus error."""
    workers = _workers(plan.argv[1:], entry)
    if not workers:
        return
    try:
        figures = os.statvfs(shm)
    except OSError:
        return
    size = figures.f_frsize * figures.f_blocks
    if 0 < size <= SMALL_SHM_BYTES:
        yield Problem(
            _("{path} has {size}; {count} loader workers hand their batches over there").format(
                path=shm, size=binary_size(size), count=workers * plan.processes
            ),
            _("Give the container more (--shm-size=8g or --ipc=host), or use num_workers=0."),
        )


def _workers(arguments: Sequence[str], entry: Path | None) -> int:
    """How many loader workers the command line asks for, or the entry file by plain numbers."""
    for option, value in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, inline = option.partition("=")
        text = inline if equals else value
        if _WORKERS.fullmatch(name) and text.isdigit():
            return int(text)
    if entry is None:
        return 0
    try:
        tree = ast.parse(entry.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 0
    return max(
        (
            keyword.value.value
            for keyword in ast.walk(tree)
            if isinstance(keyword, ast.keyword) and keyword.arg == "num_workers"
            if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, int)
        ),
        default=0,
    )

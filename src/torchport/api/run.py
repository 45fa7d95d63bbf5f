"""Run: the project's program on this machine, in the foreground or detached."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchport import config
from torchport.config import Config
from torchport.facts import Card, Facts
from torchport.launch import cards as cards_of
from torchport.launch import interpreter, machine
from torchport.launch.cards import CardsBusy, CardsMissing, Taken
from torchport.launch.engines import ENGINES
from torchport.launch.job import carry_out
from torchport.launch.keeper import start_keeper, with_cards
from torchport.launch.preflight import Needs, Problem, problems
from torchport.launch.program import OTHER_LAUNCHERS, Program, entry_of, parse
from torchport.launch.run_folder import HOME, new_run_folder, run_title, write_json
from torchport.plan import Plan
from torchport.process import ProgramMissing
from torchport.project import Project, expects_launcher, find_project
from torchport.text import _

# How long a detached run may take to write its first word into its folder.
BEGINS_WITHIN_S = 30.0


class Conflict(Exception):
    """Settings that contradict each other, or that this engine does not have."""


class NotReady(Exception):
    """Preflight found what would make the run fail. ``problems`` are all that it found."""

    def __init__(self, found: tuple[Problem, ...]) -> None:
        super().__init__(found)
        self.problems = found


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for. ``whole_command``: the words stood behind ``--`` and are run as they are."""

    words: tuple[str, ...]
    whole_command: bool = False
    on: str = "local"
    gpus: int | None = None
    nodes: int = 1
    processes: int | None = None
    max_restarts: int = 0
    grace_s: float = 30.0
    name: str | None = None
    python: str | None = None
    wait: bool = False
    share: bool = False
    preflight: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that could start now: ``argv`` in ``plan.folder`` with ``env`` beside the inherited environment.

    ``folder`` is the run folder, not made yet. ``busy`` tells who has the cards that the run would wait for.
    """

    plan: Plan
    facts: Facts
    folder: str
    name: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...] = ()
    busy: CardsBusy | None = None


def prepare(request: Request, *, folder: Path, environ: Mapping[str, str], now: float) -> Prepared:
    """Everything but the start: nothing is written, locked or started.

    Raises ProgramError, ConfigError and Conflict for what the user wrote, InterpreterError and ProgramMissing for
    what is not installed, CardsUnknown, CardsMissing, CardsBusy and NotReady for what this machine cannot do now.
    """
    program = _program(request, folder)
    if program.kind == "notebook":
        raise Conflict(
            _(
                "a notebook needs Jupyter to run: torchport run -- jupyter nbconvert --to notebook --execute {path}"
            ).format(path=shlex.quote(program.argv[0]))
        )
    entry = None if program.kind == "command" else entry_of(program, folder)
    project = find_project(entry or folder, folder, Path.home())
    settings = config.load(project.root)
    _refuse(request, program, settings)
    facts = _facts(request, program, project, settings, folder, environ)
    plan = _plan(request, program, project, settings, facts, folder, environ)
    usable = cards_of.allowed(facts.cards or (), environ.get("CUDA_VISIBLE_DEVICES"))
    _enough(request.gpus or 0, usable, facts, environ)
    found: tuple[Problem, ...] = ()
    if request.preflight:
        needs = Needs(entry, (settings.run.data,) if settings.run.data else (), settings.run.ports)
        found = (*problems(plan, facts, needs, request.gpus or 0), *_alone(plan, program, entry, project))
        if any(problem.stops for problem in found):
            raise NotReady(found)
    busy = None
    if request.gpus:
        try:
            plan = _with_free(plan, usable)
        except CardsBusy as error:
            if not request.wait:
                raise
            busy = error
    name = request.name or Path(program.name).name
    place = project.root / HOME / "runs" / run_title(name, now)
    engine = ENGINES[plan.engine](True, facts.torch.torchrun if facts.torch else ())
    env = engine.variables(plan, place, environ)
    _refuse_inherited(env, environ)
    return Prepared(plan, facts, str(place), name, engine.argv(plan), env, found, busy)


def _program(request: Request, folder: Path) -> Program:
    """The program; a command line with its own launcher is a command, for all that it says to that launcher."""
    if not request.whole_command and request.words:
        first = Path(request.words[0]).name
        own = first in ("torchrun", *OTHER_LAUNCHERS) and not (folder / request.words[0]).exists()
        program = None if own else parse(request.words, folder)
        if program is not None and program.processes is None:
            return program
    if not request.words:
        return parse((), folder)
    return Program("command", request.words)


def run(
    prepared: Prepared,
    *,
    environ: Mapping[str, str],
    now: float,
    detach: bool,
    begins: Callable[[Plan, str], None] = lambda plan, folder: None,
) -> int | None:
    """Starts what was prepared; returns the script's exit code, None for a run that goes on without us.

    ``begins`` is called with the plan and the run folder before the program starts. Raises CardsBusy where somebody
    was faster, and ProgramMissing.
    """
    plan, facts = prepared.plan, prepared.facts
    place = new_run_folder(Path(plan.project), prepared.name, now)
    try:
        plan, taken = _take(plan, facts, environ, place, detach, prepared.busy is not None)
    except BaseException:  # Ctrl-C while it waits is one of them
        shutil.rmtree(place)
        raise
    write_json(place / "plan.json", plan)
    write_json(place / "facts.json", facts)
    begins(plan, str(place))
    if not detach:
        options = facts.torch.torchrun if facts.torch else ()
        return carry_out(place, plan, environ, attached=True, options=options, keep=taken.locks)
    keeper = start_keeper(place, environ, taken.locks)
    for lock in taken.locks:
        os.close(lock)
    end = time.monotonic() + BEGINS_WITHIN_S
    while not (place / "state.json").exists() and not (place / "exit.json").exists():
        if keeper.poll() is not None or time.monotonic() > end:
            raise ProgramMissing(_("the run did not begin; {log} says why").format(log=place / "logs" / "keeper.log"))
        time.sleep(0.02)
    return None


def _take(
    plan: Plan, facts: Facts, environ: Mapping[str, str], place: Path, detach: bool, busy: bool
) -> tuple[Plan, Taken]:
    """The cards for good. A detached run that may wait does so by itself."""
    wanted = plan.gpus_per_node
    if not wanted or (busy and detach):
        return plan, Taken((), ())
    bare = replace(plan, cards=(), env=tuple(pair for pair in plan.env if not pair[0].startswith("CUDA_")))
    if busy:
        taken = cards_of.wait_for(wanted, environ=environ, run=str(place))
    else:
        usable = cards_of.allowed(facts.cards or (), environ.get("CUDA_VISIBLE_DEVICES"))
        taken = cards_of.take(usable, wanted, run=str(place), share=plan.share)
    return with_cards(bare, taken.indices), taken


def _with_free(plan: Plan, usable: tuple[Card, ...]) -> Plan:
    """The plan on the cards that it would get now; nothing is locked."""
    seen = usable if plan.share else cards_of.peek(usable)
    return with_cards(plan, cards_of.choose(seen, plan.gpus_per_node, share=plan.share))


def _enough(wanted: int, usable: tuple[Card, ...], facts: Facts, environ: Mapping[str, str]) -> None:
    if len(usable) >= wanted:
        return
    if not facts.cards:
        raise CardsMissing(
            _("--gpus {wanted}: this machine has no NVIDIA GPU, or no driver for it").format(wanted=wanted)
            + "\n    "
            + _("Without --gpus the program runs as by itself; --processes N starts N ranks on the CPU.")
        )
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    where = _("this machine has {count}") if visible is None else _("CUDA_VISIBLE_DEVICES={visible} leaves {count}")
    raise CardsMissing(f"--gpus {wanted}: " + where.format(count=len(usable), visible=visible))


def _alone(plan: Plan, program: Program, entry: Path | None, project: Project) -> tuple[Problem, ...]:
    """Ranks of a program that does not seem to know of ranks: each would do all the work."""
    if plan.processes < 2 or entry is None or expects_launcher(entry, project.root):
        return ()
    text = _("{name} starts {count} times, and nothing in the project asks which of them it is").format(
        name=program.name, count=plan.processes
    )
    return (Problem(text, _("For one process that uses all cards say --processes 1."), stops=False),)


def _refuse(request: Request, program: Program, settings: Config) -> None:
    """Settings that contradict each other. Nothing is guessed."""
    gpus, processes = request.gpus or 0, request.processes
    set_there = dict(settings.run.env)
    cases = (
        (request.nodes > 1, _("--nodes {n}: --on local is one machine").format(n=request.nodes)),
        (request.wait and request.share, _("--wait waits for free cards, --share does without: give one of them")),
        (not gpus and request.wait, _("--wait needs --gpus N: it says for how many cards to wait")),
        (not gpus and request.share, _("--share needs --gpus N: it says how many cards to share")),
        (
            bool(processes and gpus and (processes > gpus or gpus % processes)),
            _("--processes {processes} cannot share --gpus {gpus} evenly").format(processes=processes, gpus=gpus),
        ),
        (
            program.kind == "command" and bool(processes or request.max_restarts),
            _("--processes and --max-restarts are for a script; the command behind -- starts its own"),
        ),
        (
            bool(gpus) and "CUDA_VISIBLE_DEVICES" in set_there,
            _("--gpus chooses cards, and [tool.torchport.run] env sets CUDA_VISIBLE_DEVICES: keep one of them"),
        ),
    )
    for holds, message in cases:
        if holds:
            raise Conflict(message)


def _refuse_inherited(env: tuple[tuple[str, str], ...], environ: Mapping[str, str]) -> None:
    for name, value in env:
        if name.startswith("PET_") and environ.get(name, value) != value:
            raise Conflict(
                _("the environment sets {name}={there}, this run needs {value}: unset it").format(
                    name=name, there=environ[name], value=value
                )
            )


def _facts(
    request: Request, program: Program, project: Project, settings: Config, folder: Path, environ: Mapping[str, str]
) -> Facts:
    explicit = interpreter.named(request.python or program.python, folder, settings.python, project.root)
    look = interpreter.environment if program.kind == "command" else interpreter.choose
    torch = look(explicit, project.root, folder, environ, sys.executable)
    driver, cards = cards_of.look() if request.gpus else (None, None)
    return Facts(machine.host(), torch, machine.real_gpus(), driver, cards)


def _plan(
    request: Request,
    program: Program,
    project: Project,
    settings: Config,
    facts: Facts,
    folder: Path,
    environ: Mapping[str, str],
) -> Plan:
    gpus = request.gpus or 0
    python = facts.torch.python if facts.torch else sys.executable
    processes = request.processes or (1 if program.kind == "command" else max(gpus, 1))
    env = dict(settings.run.env)
    argv = program.argv
    if program.kind == "command":
        home = Path(os.path.abspath(python)).parent
        env["PATH"] = os.pathsep.join((str(home), environ.get("PATH", os.defpath)))
        if (home.parent / "pyvenv.cfg").exists():
            env["VIRTUAL_ENV"] = str(home.parent)
        argv = (_found(argv[0], folder, env["PATH"]), *argv[1:])
    return Plan(
        argv=argv,
        kind=program.kind,
        python=python,
        folder=str(folder),
        project=str(project.root),
        env=tuple(env.items()),
        nodes=request.nodes,
        gpus_per_node=gpus,
        processes=processes,
        launcher=processes > 1 or request.max_restarts > 0,
        engine=request.on,
        wait=request.wait,
        share=request.share,
        max_restarts=request.max_restarts,
        grace_s=request.grace_s,
    )


def _found(word: str, folder: Path, path: str) -> str:
    """A command as the project's environment has it. Raises ProgramMissing."""
    if word in ("python", "python3", "torchrun"):
        return word
    there = shutil.which(str(folder / word) if "/" in word else word, path=path)
    if there is None:
        raise ProgramMissing(_("{word}: there is no such command in the project's environment").format(word=word))
    return there

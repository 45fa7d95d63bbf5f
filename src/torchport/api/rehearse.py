"""Rehearse: run the user's unmodified program on virtual GPUs and tell what was found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchport import config
from torchport.config import Config
from torchport.explain import rehearsal
from torchport.facts import Facts
from torchport.finding import Finding, Severity
from torchport.hardware.gpus import DEFAULT_GPU, lookup
from torchport.launch import interpreter, machine
from torchport.launch.engines.rehearse import Rehearse
from torchport.launch.inside_copy import private_folder
from torchport.launch.outcome import collect
from torchport.launch.program import Program, entry_of, parse
from torchport.launch.run_folder import new_run_folder, state, write_json
from torchport.launch.supervise import Ending, Manner, supervise
from torchport.plan import Plan, Run, VirtualGpus
from torchport.project import Project, expects_launcher, find_project
from torchport.record import Record


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; None takes the project's configuration, then the default."""

    words: tuple[str, ...]
    gpu: str | None = None
    gpus: int | None = None
    steps: int | None = None
    timeout_s: float | None = None
    strict: bool = False
    shapes_only: bool = False
    python: str | None = None
    plain: bool = False  # an ordinary CPU run with a record
    seed: int | None = None  # for programs that set none, where two runs are to be compared


def rehearse(
    request: Request,
    *,
    folder: Path,
    environ: Mapping[str, str],
    announce: Callable[[Plan, Facts], None] = lambda plan, facts: None,
    output: int | None = None,
    apart: bool = False,
) -> Run:
    """Rehearses and returns the run, whatever became of the program.

    ``announce`` is called before the program starts; ``output`` is a file descriptor for what it prints, in place
    of our standard output, with ``apart`` for its errors too, and it has nothing to read then. Raises ProgramError,
    ConfigError and UnknownGpu for what the user wrote, InterpreterError where no Python can run it.
    """
    started = time.time()
    program = parse(request.words, folder)
    entry = entry_of(program, folder)
    project = find_project(entry or folder, folder, Path.home())
    settings = config.load(project.root)
    plan = _plan(request, program, entry, project, settings, folder)
    python = interpreter.named(request.python or program.python, folder, settings.python, project.root)
    torch = interpreter.choose(python, project.root, folder, environ, sys.executable)
    facts = Facts(machine.host(), torch, machine.real_gpus())
    # A real card must not come between; without one the variable stays as the user has it.
    plan = replace(plan, python=torch.python, env=(("CUDA_VISIBLE_DEVICES", ""),) if facts.gpus else ())
    place = new_run_folder(project.root, program.name, started)
    write_json(place / "plan.json", plan)
    write_json(place / "facts.json", facts)
    announce(plan, facts)
    engine = Rehearse(str(private_folder(environ, place)), machine.free_port(), place.name)
    processes = engine.processes(plan, place, environ)
    ending = supervise(
        processes,
        folder=str(folder),
        environ=environ,
        timeout_s=plan.timeout_s,
        started=lambda pid: write_json(place / "state.json", state(pid, started)),
        manner=Manner(output=output, apart=apart),
    )
    records = collect(place, plan, facts, processes, ending)
    findings = rehearsal.findings(records)
    code = exit_code(ending, records, findings)
    ended = {"code": code, "reason": ending.reason, "ranks": ending.codes, "seconds": ending.seconds}
    write_json(place / "exit.json", ended)
    return Run(str(place), plan, facts, records, findings, code, ending.seconds)


def exit_code(ending: Ending, records: Sequence[Record], findings: Sequence[Finding]) -> int:
    """The exit code of contract.md: 130, 5, 4, 1 or 0, the first that holds."""
    if ending.reason == "interrupted":
        return 130
    exits = [record.exit for record in records if record.exit]
    errors = [left["error"].get("type") for left in exits if isinstance(left.get("error"), dict)]
    if ending.reason in ("timeout", "hung") or "OutOfMemoryError" in errors:
        return 5
    if any(ending.codes) or any(left["reason"] == "error" for left in exits):
        return 4
    return int(any(finding.severity >= Severity.WARNING for finding in findings))


def _plan(
    request: Request,
    program: Program,
    entry: Path | None,
    project: Project,
    settings: Config,
    folder: Path,
) -> Plan:
    gpus = request.gpus or program.processes or settings.gpus or 1
    processes = program.processes
    if processes is None:
        launched = gpus > 1 and entry is not None and expects_launcher(entry, project.root)
        processes = gpus if launched else 1
    processes = processes or gpus
    return Plan(
        argv=program.argv,
        kind=program.kind,
        python="",
        folder=str(folder),
        project=str(project.root),
        engine="rehearse",
        gpus_per_node=gpus,
        processes=processes,
        launcher=program.processes is not None or processes > 1,
        local_rank_option=program.local_rank_option,
        master_port=program.master_port,
        timeout_s=request.timeout_s,
        virtual=VirtualGpus(
            gpu=lookup(request.gpu or settings.gpu or DEFAULT_GPU).key,
            strict=request.strict,
            backing="meta" if request.shapes_only else "cpu",
            steps=request.steps,
            plain=request.plain,
            seed=request.seed,
        ),
    )

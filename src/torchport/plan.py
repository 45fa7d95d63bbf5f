"""Plan: what will run, and where. Run: what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from torchport.facts import Facts
from torchport.finding import Finding
from torchport.record import Record


@dataclass(frozen=True, slots=True)
class VirtualGpus:
    """The virtual machine of a rehearsal.

    ``gpu`` is a key of ``torchport.hardware.gpus``; ``backing`` is "cpu" (real numbers) or "meta" (shapes
    only); ``strict`` stops at the first fault as CUDA does; ``steps`` ends the run after that many optimizer
    steps; ``plain`` records an ordinary CPU run; ``seed`` is set before the program starts.
    """

    gpu: str
    strict: bool = False
    backing: str = "cpu"
    steps: int | None = None
    plain: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One job. ``argv`` is the program, by ``kind`` a script, module or notebook, with its own arguments, or a
    whole "command".

    ``python`` is the interpreter that runs it, ``folder`` the working directory, ``project`` the folder whose
    files are the user's, ``env`` what is set beside the inherited environment. ``processes`` counts ranks on
    a node; with ``launcher`` each gets the variables that torchrun sets, with ``local_rank_option`` also
    --local-rank=K. ``engine`` is a key of ``torchport.launch.engines.ENGINES``.

    ``cards`` are the cards taken for it, by index; ``wait`` is true where it may wait for them, ``share`` where
    others may compute on them too. ``grace_s`` is how long it may take to end after it was asked to.
    """

    argv: tuple[str, ...]
    kind: str
    python: str
    folder: str
    project: str
    env: tuple[tuple[str, str], ...] = ()
    nodes: int = 1
    gpus_per_node: int = 1
    processes: int = 1
    launcher: bool = False
    local_rank_option: bool = False
    master_port: int | None = None
    timeout_s: float | None = None
    virtual: VirtualGpus | None = None
    record_path: str = "record.jsonl"
    engine: str = "local"
    cards: tuple[int, ...] = ()
    wait: bool = False
    share: bool = False
    max_restarts: int = 0
    grace_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended. ``records`` are those of its ranks in order, ``exit_code`` is torchport's own.

    ``folder`` is the run folder, absolute. ``seconds`` is wall-clock time from the first process to the last.
    """

    folder: str
    plan: Plan
    facts: Facts
    records: tuple[Record, ...]
    findings: tuple[Finding, ...]
    exit_code: int
    seconds: float

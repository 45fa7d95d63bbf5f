"""Stack: what is installed. Plan: what will run, and where. Run: what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from torchport.facts import Facts
from torchport.finding import Finding
from torchport.record import Record


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution, pinned.

    ``name`` is spelled as indexes do ("nvidia-cudnn-cu12"), ``version`` is in full ("2.14.1+cu126"). ``hashes``
    are those of the files that may be installed, "sha256:…"; the stack's Python and platform leave one wheel, or
    more where a release has several that fit. ``url`` is where the first of them was found, None for one out of a
    folder of wheels; ``size_bytes`` is its size. ``source``: there is no wheel, it is built where it is installed.
    ``url`` alone, with ``hashes`` empty, is what a project takes from a repository: ``version`` then is a commit.
    """

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    url: str | None = None
    size_bytes: int | None = None
    source: bool = False


@dataclass(frozen=True, slots=True)
class Stack:
    """What is installed for one Python on one platform with one backend. torchport.lock holds them side by side.

    ``python`` is the minor version ("3.12"); ``platform`` is "linux-x86_64" or "linux-aarch64"; ``torch`` is the
    version without its tag ("2.14.1"), ``backend`` that tag: "cpu", or the CUDA that is in the wheels, "cu126".
    ``toolkit``, ``cudnn`` and ``nccl`` are the versions of these, ``architectures`` the cards for which the torch
    wheel has machine code ("7.5", "9.0a"), ``ptx`` the one for which it has PTX. ``driver`` is the oldest driver
    that runs it, by the policy it was chosen under. All of these are None or empty for "cpu", and None where
    unknown. ``gpu`` is the card it was chosen for, as a key of ``torchport.hardware.gpus``, or as the user named it;
    ``capability`` is that card's ("8.9").

    ``packages`` is the closure, torch itself among them, by name. ``index`` is where torch was found, ``pypi``
    where the rest was, both without any mirror; None is the public one of Python. ``glibc`` is the oldest that the
    wheels run with ("2.28"): a base image has to have it. ``base_image`` is an image with its digest
    ("ubuntu:24.04@sha256:…"), None where nobody has looked one up. ``builds`` are folders of the project with
    CUDA or C++ sources ("." for its root): they need a compiler, and a toolkit of the same CUDA, in a build stage.
    ``requirements`` is what the project asked for when this was locked, one line each, as it wrote them.
    """

    python: str
    platform: str
    torch: str
    backend: str
    packages: tuple[Package, ...] = ()
    toolkit: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    architectures: tuple[str, ...] = ()
    ptx: str | None = None
    driver: str | None = None
    gpu: str | None = None
    capability: str | None = None
    index: str | None = None
    pypi: str | None = None
    glibc: str | None = None
    base_image: str | None = None
    builds: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Python, platform and backend: what tells it from the others in a lock."""
        return f"python{self.python}-{self.platform}-{self.backend}"


def pinned(stack: Stack) -> str:
    """The packages as a requirements file with hashes, for ``uv pip install --no-deps --require-hashes -r``."""
    lines = []
    for package in stack.packages:
        if not package.hashes:
            lines.append(f"{package.name} @ {package.url}")
            continue
        hashes = "".join(f" \\\n    --hash={digest}" for digest in package.hashes)
        lines.append(f"{package.name}=={package.version}{hashes}")
    return "".join(f"{line}\n" for line in lines)


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

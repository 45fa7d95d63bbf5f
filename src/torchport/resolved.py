"""Resolved: what a project wants, what the target can run, the stack chosen for it, and why no other."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchport.plan import Stack


@dataclass(frozen=True, slots=True)
class Asked:
    """One line in which a project asks for a distribution, or for Python itself (``name`` is "python").

    ``name`` is in its normal form, ``text`` is PEP 508 ("torch>=2.1"), for Python a set of specifiers (">=3.9").
    ``path`` is where it stands, seen from the project; an option stands as it is written ("--torch").
    """

    name: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Gate:
    """A name of torch's interface in the project that exists from torch ``since`` on, or until ``gone``."""

    name: str
    place: str
    since: str | None = None
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a project wants.

    ``asked`` is in the order of the files; ``python`` what they say of Python; ``cuda`` the (CUDA, path) that they
    name, "12.1"; ``locked`` are (name, version, path) out of another tool's lock file. ``imported`` are
    distributions that are imported and that nobody asks for, (name, path); ``unknown`` top-level modules that belong
    to no known distribution. ``builds`` are folders with CUDA or C++ sources. ``skipped`` are (path, line): what
    could not be read as a requirement, or is no Python package.
    """

    asked: tuple[Asked, ...] = ()
    python: tuple[Asked, ...] = ()
    cuda: tuple[str, str] | None = None
    locked: tuple[tuple[str, str, str], ...] = ()
    imported: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    api: tuple[Gate, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that is to run the project. None means unknown, and then nothing is thrown out for it.

    ``cuda`` is what the user asks of the build, "12.6", or "cpu"; ``gpu`` the card as named, ``capability`` its
    number ("8.9"); ``strict`` wants the driver of the toolkit's own minor version. ``python`` is the minor version
    of the interpreter that the project has now.
    """

    platform: str = "linux-x86_64"
    gpu: str | None = None
    capability: str | None = None
    driver: str | None = None
    cuda: str | None = None
    strict: bool = False
    python: str | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a build of torch is out. ``kind`` is its id, ``values`` what goes into its sentence.

    A kind is a fact of the machine (driver, driver-unknown, architecture, architecture-unknown, platform, unseen)
    or a wish that could be given up (torch, cuda, python, api, torchvision, torchaudio, torchtext).
    """

    kind: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A build of torch with every reason that speaks against it."""

    torch: str
    backend: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """A stack that could be had if the reasons in ``instead`` were no more."""

    stack: Stack
    instead: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The stack that is best, None where nothing is left; then ``nearest`` are those that miss least.

    ``why`` says what decided, most important first; ``notes`` what the user should know. Both are reasons, too.
    ``upgrades`` are better stacks that only a newer driver keeps out.
    """

    wanted: Wanted
    target: Target
    stack: Stack | None
    why: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    rejected: tuple[Rejected, ...] = field(default=(), repr=False)
    nearest: tuple[Nearest, ...] = ()
    upgrades: tuple[Nearest, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """One way in which the world is no longer as a lock has it: ``kind`` is its id, ``values`` fill its sentence."""

    kind: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Locked:
    """A choice, and the lock that it went into. ``stack`` has all its packages, None where nothing could be chosen.

    ``path`` is the lock's, ``beside`` the names of the other stacks in it. ``changed`` are (package, before, now)
    since the stack was locked last, with "" for none, and twice the same where only its files are others; None where
    it was not locked before. ``disagreements`` are (what, in our table, in the wheels). ``failure`` says why nothing
    was locked although something could be chosen.
    """

    resolved: Resolved
    stack: Stack | None
    path: str
    beside: tuple[str, ...] = ()
    changed: tuple[tuple[str, str, str], ...] | None = None
    disagreements: tuple[tuple[str, str, str], ...] = ()
    failure: str = ""
    exit_code: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Compared:
    """A lock held against the project and this machine: each of its stacks that is for here, with its drifts.

    ``elsewhere`` are the names of those that are for other machines; ``python`` the interpreter that was looked at.
    """

    path: str
    stacks: tuple[tuple[Stack, tuple[Drift, ...]], ...]
    elsewhere: tuple[str, ...]
    python: str | None
    exit_code: int

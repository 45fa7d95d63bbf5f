"""Migrate: read, run, repair where it is made, run again, until a strict rehearsal is clean; then the proof."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from torchport.check.engine import check_source
from torchport.check.repair import repair as repair_text
from torchport.check.rule import LoadedRule
from torchport.check.rules import rules
from torchport.finding import Finding, Severity
from torchport.migrate import reference
from torchport.migrate.cells import placed
from torchport.migrate.device import give_device
from torchport.migrate.program import program
from torchport.migrate.recipe import Launch, Runner
from torchport.migrate.repairs import Proposal, identity, propose
from torchport.migrate.revive import make_readable, revive
from torchport.migrate.tree import Tree
from torchport.migrated import Proof, losses
from torchport.plan import Run
from torchport.record import Observation

_MEETINGS = frozenset({"R101", "R102", "R103"})
_MOST_ROUNDS = 20
_FAILURES = ("error", "oom", "hung")
# What keeps a project from running on a GPU; the rest of what reading finds is told by ``check``.
_GROUPS = ("C1", "C2")
# What torch, NumPy and Python no longer have: it ends the program wherever that runs.
_GONE = ("C511", "C93", "C94", "C95")


@dataclass(slots=True)
class Migration:
    """What became of it. ``left`` are faults without a known repair; ``refused`` repairs changed the losses."""

    tree: Tree
    files: list[str]
    reference: Run | None = None
    first: Run | None = None
    last: Run | None = None
    after: Run | None = None
    read: tuple[Finding, ...] = ()
    read_repaired: list[Finding] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    applied: list[Proposal] = field(default_factory=list)
    refused: list[Proposal] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)
    gave_device: bool = False
    by_rehearsal: bool = False
    rounds: int = 0
    on_gpu: Proof | None = None
    on_cpu: Proof | None = None

    @property
    def clean(self) -> bool:
        """Whether the migrated project runs strictly and on the GPU, and its losses are what they were."""
        ran = self.last is not None and self.last.exit_code in (0, 1)
        return ran and self.used_gpu and not self.left and self._same()

    @property
    def used_gpu(self) -> bool:
        """Whether the result computes anything on a GPU: a program may be told, or may choose, to stay on the CPU."""
        return self.last is not None and any(record.gpu_bytes != 0 for record in self.last.records)

    def seen(self) -> tuple[list[Finding], list[Finding], list[Finding]]:
        """Faults that reading found and the run confirmed, those that the run did not reach, and those that only the
        run found.
        """
        ran = [each for each in self.first.findings if each.severity == Severity.ERROR] if self.first else []
        run_lines, read_lines = set(), set()
        for each in ran:
            run_lines |= lines(each)
        for each in self.read:
            read_lines |= lines(each)
        confirmed = [each for each in self.read if lines(each) & run_lines]
        unreached = [each for each in self.read if not lines(each) & run_lines]
        return confirmed, unreached, [each for each in ran if not lines(each) & read_lines]

    def _same(self) -> bool:
        return all(proof is None or proof.same for proof in (self.on_gpu, self.on_cpu))


def migrate(
    tree: Tree,
    entry: str,
    run: Runner,
    tell: Callable[[str], None] = lambda step: None,
    torch: tuple[int, int] | None = None,
) -> Migration:
    """Migrates the copy. ``entry`` is the script, relative to it; ``run`` runs the program in a folder."""
    done = Migration(tree, program(tree, entry) or tree.paths())
    done.revived = make_readable(tree)
    tell("plain")
    done.reference = run(tree.folder, Launch(plain=True))
    if failed(done.reference) and _repair_as_read(done, torch, _rules(_GONE)):
        done.reference = run(tree.folder, Launch(plain=True))
    done.reference = _revived(done, done.reference, Launch(plain=True), run)
    works_on_cpu = not failed(done.reference)
    done.gave_device = give_device(tree, entry)
    tell("heal")
    done.first = _revived(done, run(tree.folder, Launch()), Launch(), run)
    done.by_rehearsal = reference.of_rehearsal(done.reference, works_on_cpu, done.first)
    wanted = losses((done.first if done.by_rehearsal else done.reference).records)
    done.read = tuple(_read(done, torch))
    current, before = done.first, tree.state()
    if _repair_as_read(done, torch, device_rules()):
        tell("repair")
        current = run(tree.folder, Launch())
        if _new_kinds(done.first, current) or not _holds(done.first, current, wanted):
            tree.restore(before)
            current, done.read_repaired = done.first, []
    _run_and_repair(done, current, run, wanted, tell)
    tell("strict")
    done.last = run(tree.folder, Launch(strict=True))
    done.on_gpu = Proof(wanted, losses(done.last.records))
    tell("again")
    done.after = run(tree.folder, Launch(plain=True))
    if works_on_cpu or not failed(done.after):
        done.on_cpu = Proof(losses(done.reference.records) if works_on_cpu else wanted, losses(done.after.records))
    if not done.left and failed(done.last):
        done.left = [each for each in done.last.findings if each.severity == Severity.ERROR]
    return done


def _revived(done: Migration, known: Run, launch: Launch, run: Runner) -> Run:
    """A run, and where the program itself fails, the one after what can be repaired of that."""
    found = revive(done.tree, known, launch, run)
    done.revived += found.repaired
    return found.run


def lines(finding: Finding) -> set[tuple[str, int]]:
    """The places of a finding: where it is and what its evidence names."""
    places = [finding.location, *(each.location for each in finding.evidence)]
    return {(place.path, place.line) for place in places if place is not None}


def failed(run: Run) -> bool:
    """Whether the program itself ended in an error."""
    return any(record.exit is None or record.exit.get("reason") in _FAILURES for record in run.records)


def device_rules() -> list[LoadedRule]:
    """The rules about devices, and about what is gone, whose repairs belong to a migration."""
    return _rules((*_GROUPS, *_GONE))


def said(run: Run) -> str:
    """The error of the first rank that has one, in one line."""
    for record in run.records:
        error = (record.exit or {}).get("error")
        if isinstance(error, dict):
            lines = re.sub(r"\x1b\[[\d;]*m", "", str(error.get("message"))).splitlines() or [""]
            return f"{error.get('type')}: {lines[0]}, {error.get('site') or ''}".rstrip(", ")
    return ""


def _rules(groups: tuple[str, ...]) -> list[LoadedRule]:
    return [
        loaded for loaded in rules() if loaded.rule.id.startswith(groups) and loaded.rule.severity == Severity.ERROR
    ]


def _read(done: Migration, torch: tuple[int, int] | None) -> Iterator[Finding]:
    """What reading says about devices."""
    chosen = device_rules()
    for path in done.files:
        source = done.tree.read(path)
        if source is not None and "torch" in source.text:
            yield from placed(source, check_source(source, torch, chosen, []))


def _repair_as_read(done: Migration, torch: tuple[int, int] | None, chosen: list[LoadedRule]) -> bool:
    """What can be repaired without a run: the safe fixes of these checks, in the files of the program."""
    before = len(done.read_repaired)
    for path in done.files:
        source = done.tree.read(path)
        if source is None or "torch" not in source.text:
            continue
        mended = repair_text(source, lambda each: check_source(each, torch, chosen, []))
        if mended.text != source.text:
            done.tree.write(path, mended.text)
        done.read_repaired += placed(source, mended.applied)
    return len(done.read_repaired) > before


def _run_and_repair(
    done: Migration,
    current: Run,
    run: Runner,
    wanted: tuple[float, ...],
    tell: Callable[[str], None],
) -> None:
    """Rounds of a rehearsal and the repairs of what it saw; one that breaks the program or its losses is taken back."""
    tried: set[tuple[str, str]] = set()
    second: set[tuple[str, str]] = set()  # what brought in faults of another kind: taken where nothing else is left
    alone = lenient = False
    while done.rounds < _MOST_ROUNDS:
        proposals = _proposals(_errors(current), done.tree, tried)[: 1 if alone else None]
        if not proposals and second and not lenient:
            lenient, alone, tried = True, True, tried - second
            continue
        if not proposals:
            break
        done.rounds += 1
        before = done.tree.state()
        had = Counter(identity(each, done.tree) for each in _errors(current))
        made = [each for each in proposals if done.tree.change(each.path, list(each.changes))]
        tell("repair")
        fresh = run(done.tree.folder, Launch())
        have = Counter(identity(each, done.tree) for each in _errors(fresh))
        fits = made and all(have[each.identity] < had[each.identity] for each in made)
        if fits and _holds(current, fresh, wanted):
            if lenient or not _new_kinds(current, fresh):
                done.applied += made
                current, alone = fresh, False
                continue
            second |= {(each.kind, each.identity) for each in made} if len(made) == 1 else set()
        done.tree.restore(before)
        alone = len(made) > 1
        if not alone:  # of several that do not hold together, each gets its turn
            done.refused += made
            tried |= {(each.kind, each.identity) for each in proposals}
    done.left = [each for each in current.findings if each.severity == Severity.ERROR]


def _new_kinds(current: Run, fresh: Run) -> bool:
    """Whether a repair has led to faults of a kind that was not there, other than tensors that meet elsewhere."""
    return bool({each.id for each in _errors(fresh)} - {each.id for each in _errors(current)} - _MEETINGS)


def _errors(run: Run) -> list[Observation]:
    return [each for record in run.records for each in record.findings if each.severity == "error"]


def _holds(current: Run, fresh: Run, wanted: tuple[float, ...]) -> bool:
    """Whether a run after repairs comes as far as the one before, with the losses that are wanted."""
    have = losses(fresh.records)
    if (failed(fresh) and not failed(current)) or len(have) < len(losses(current.records)):
        return False
    return Proof(wanted[: len(have)], have).same


def _proposals(observed: Sequence[Observation], tree: Tree, tried: set[tuple[str, str]]) -> list[Proposal]:
    """One change a file and place at a time: edits of the same text would not fit together."""
    found: list[Proposal] = []
    taken: set[str] = set()
    for each in observed:
        proposal = propose(each, tree, tried)
        if proposal is None or proposal.path in taken:
            continue
        taken.add(proposal.path)
        found.append(proposal)
    return found

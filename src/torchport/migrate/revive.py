"""Revives a program that ends in an error wherever it runs, because of what torch no longer has."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchport.check.decoding import decode
from torchport.check.source import Source, Unreadable
from torchport.migrate import gone
from torchport.migrate.recipe import Launch, Runner
from torchport.migrate.tree import Tree
from torchport.plan import Run
from torchport.record import Site

_MOST_ROUNDS = 20


@dataclass(slots=True)
class Revived:
    """A run that comes further than the one before; ``repaired`` says what was changed where."""

    run: Run
    repaired: list[str] = field(default_factory=list)


def revive(tree: Tree, known: Run, launch: Launch, run: Runner) -> Revived:
    """Repairs the error that ended a run, runs again, until it ends in none or in one that is not known here."""
    done = Revived(known)
    while len(done.repaired) < _MOST_ROUNDS:
        error = ending(done.run)
        source = tree.read(error[0].path) if error is not None else None
        if error is None or source is None:
            break
        site, message = error
        before, edits = tree.state(), gone.changes(source, site.line, message)
        if not edits or not tree.change(site.path, edits):
            break
        fresh = run(tree.folder, launch)
        if ending(fresh) == error:
            tree.restore(before)
            break
        done.run = fresh
        done.repaired.append(f"gone at {site}")
    return done


def ending(run: Run) -> tuple[Site, str] | None:
    """Where and with which words a program ended in an error, in the first rank that did."""
    for record in run.records:
        error = (record.exit or {}).get("error")
        if isinstance(error, dict) and isinstance(error.get("site"), Site):
            return error["site"], str(error.get("message"))
    return None


def make_readable(tree: Tree) -> list[str]:
    """Files that are no Python any more and are with a keyword of today; what was changed where."""
    found = []
    for path in tree.paths():
        if tree.read(path) is not None:
            continue
        try:
            fresh = gone.parsed(decode((tree.folder / path).read_bytes()))
            Source(path, fresh)
        except Unreadable:
            continue
        tree.write(path, fresh)
        found.append(f"gone at {path}")
    return found

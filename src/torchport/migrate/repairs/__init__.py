"""Repairs: from a fault that a rehearsal has seen to a change of the source, at the place where the tensor was made."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from torchport.check.rule import Change
from torchport.migrate.cells import joined
from torchport.migrate.repairs import (
    assigned,
    batch,
    container,
    factory,
    fetched,
    generator,
    host,
    layer,
    loss,
    module,
    ranks,
    use,
)
from torchport.migrate.repairs.sites import at_line, offender, rooted
from torchport.migrate.tree import Tree
from torchport.record import Observation

Repair = Callable[[Observation, Tree], "tuple[str, list[Change]] | None"]

# In the order in which they are tried: where the tensor is made first, where it is used last.
REPAIRS: tuple[tuple[str, Repair], ...] = (
    ("ranks", ranks.repair),
    ("generator", generator.repair),
    ("generator on the host", generator.on_host),
    ("batch", batch.names),
    ("batch unpacked", batch.unpacked),
    ("loss", loss.repair),
    ("module", module.repair),
    ("list registered", container.register),
    ("list moved", container.move),
    ("layer", layer.repair),
    ("buffer", factory.register),
    ("factory", factory.repair),
    ("host", host.repair),
    ("fetched", fetched.repair),
    ("batch moved", batch.whole),
    ("batch as a dictionary", batch.mapping),
    ("batch as a list", batch.sequence),
    ("buffer where it is set", factory.kept),
    ("assigned", assigned.repair),
    ("set", assigned.where_set),
    ("handed on", assigned.handed),
    ("use", use.repair),
    ("use of a module", use.to_module),
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change of one file for one observation; ``kind`` is the repair that knew it."""

    kind: str
    path: str
    changes: tuple[Change, ...]
    observation: Observation
    identity: str


def identity(observation: Observation, tree: Tree) -> str:
    """What a fault is, wherever its line stands now and whatever was written into it."""
    observation = joined(observation, tree)
    site, wrong = observation.site, offender(observation)
    source = tree.read(site.path) if site is not None else None
    owners = [each.name for each in at_line(source, site.line, ast.ClassDef)] if source and site else []
    place = f"{site.path} {' '.join(owners)} {site.function}" if site is not None else ""
    tensor = f"{wrong.get('argument')} {wrong.get('shape')} {wrong.get('name')}"
    return f"{observation.id} {place} {observation.fields.get('op')} {tensor}"


def propose(observation: Observation, tree: Tree, tried: set[tuple[str, str]]) -> Proposal | None:
    """The first repair that knows what to do and was not tried before for that fault."""
    name, seen = identity(observation, tree), joined(observation, tree)
    for at_root in (True, False):  # what it was computed from goes first: there the user would move it
        place = rooted(seen) if at_root else seen
        for kind, repair in REPAIRS if place is not None else ():
            kind = f"{kind} at its root" if at_root else kind
            found = repair(place, tree) if place is not None and (kind, name) not in tried else None
            if found is not None and found[1]:
                return Proposal(kind, found[0], tuple(found[1]), observation, name)
    return None

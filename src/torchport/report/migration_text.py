"""A migration for the terminal: the patch, what was found how, the proof, and what is left."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from torchport.finding import Finding
from torchport.migrated import Adopted, Migrated, Proof
from torchport.report.printable import printable
from torchport.report.terminal import QUIET, set_in_lines
from torchport.text import _, ngettext

_SHOWN_DRAWS = 6
_NAME_CELLS = 11


def render(migrated: Migrated, *, width: int = 100, color: bool = False) -> str:
    """The report in lines of ``width`` cells; the patch keeps its own."""
    return set_in_lines(_parts(migrated), width=width, color=color)


def _patch(patch: str) -> Iterator[Text]:
    for line in patch.splitlines():
        style = ""
        if line.startswith(("---", "+++")):
            style = "bold"
        elif line.startswith("@@"):
            style = "cyan"
        elif line.startswith(("+", "-")):
            style = "green" if line[0] == "+" else "red"
        yield Text(printable(line), style)
    if patch:
        yield Text("")


def _parts(migrated: Migrated) -> Iterator[Text | Table]:
    yield _row(_("before"), _before(migrated))
    yield _row(_("after"), _after(migrated))
    yield Text("")
    yield from _patch(migrated.patch)
    yield _headline(migrated)
    yield Text("")
    yield _row(_("found"), _found(migrated))
    for finding in migrated.only_run:
        yield _quiet(_("by running only"), finding)
    for finding in migrated.unreached:
        yield _quiet(_("not exercised"), finding)
    yield from _ranks(migrated)
    yield from _proofs(migrated)
    if migrated.draws:
        places = ", ".join(f"{operator} {place}" for place, operator in migrated.draws[:_SHOWN_DRAWS])
        more = len(migrated.draws) - _SHOWN_DRAWS
        places += f" +{more}" if more > 0 else ""
        yield _row(_("random"), _("a real card draws other numbers here: {places}").format(places=places))
    if migrated.failure:
        yield _row(_("stopped"), migrated.failure)
    for refused in migrated.refused:
        yield _row(_("refused"), _("{repair} does not hold, and was taken back").format(repair=refused))
    for adopted in migrated.recipes:
        yield _row(_("recipe"), _recipe(adopted))
        if adopted.note and adopted.applied:
            yield _row("", _(adopted.note))
    yield from _left(migrated)
    yield _row(_("result"), _written(migrated))


def _before(migrated: Migrated) -> str:
    if migrated.gave_device:
        return _("no tensor is ever on a GPU")
    faults = (*migrated.confirmed, *migrated.only_run)
    if not faults:
        return _("no fault on a GPU")
    first = min((each.location for each in faults if each.location), key=lambda at: (at.path, at.line), default=None)
    return ngettext(
        "{count} fault on a GPU, at {first}", "{count} faults on a GPU, the first at {first}", len(faults)
    ).format(count=len(faults), first=first or "")


def _after(migrated: Migrated) -> str:
    if not migrated.used_gpu and not migrated.failure:
        return _("no tensor is ever on a GPU")
    if not migrated.clean and not migrated.left:
        return _("not shown: the program itself fails") if migrated.failure else _("other losses, see below")
    if not migrated.clean:
        return ngettext("{count} fault is left", "{count} faults are left", len(migrated.left)).format(
            count=len(migrated.left)
        )
    count = len(migrated.on_gpu.before) if migrated.on_gpu else 0
    if migrated.by_rehearsal:
        return ngettext(
            "runs on a GPU, with {count} loss as before, bit for bit",
            "runs on a GPU, with {count} losses as before, bit for bit",
            count,
        ).format(count=count)
    return ngettext(
        "runs on a GPU, with {count} loss as on the CPU, bit for bit",
        "runs on a GPU, with {count} losses as on the CPU, bit for bit",
        count,
    ).format(count=count)


def _headline(migrated: Migrated) -> Text:
    if migrated.clean and not migrated.patch:
        return Text(_("{entry} needs no change").format(entry=migrated.entry), "bold green")
    if not migrated.used_gpu and not migrated.failure:
        return Text(
            _("{entry} never uses a GPU, and no repair gives it one").format(entry=migrated.entry), "bold yellow"
        )
    if migrated.clean:
        return Text(_("{entry} runs on a GPU, and computes what it did").format(entry=migrated.entry), "bold green")
    return Text(_("{entry} is not there yet").format(entry=migrated.entry), "bold yellow")


def _found(migrated: Migrated) -> str:
    parts = [
        ngettext(
            "{count} fault by reading and running", "{count} faults by reading and running", len(migrated.confirmed)
        ).format(count=len(migrated.confirmed)),
        ngettext("{count} by running only", "{count} by running only", len(migrated.only_run)).format(
            count=len(migrated.only_run)
        ),
        ngettext("{count} not exercised", "{count} not exercised", len(migrated.unreached)).format(
            count=len(migrated.unreached)
        ),
    ]
    if migrated.gave_device:
        parts.append(_("the project had no device, and has one now: DEVICE=cpu chooses another"))
    return "; ".join(parts)


def _ranks(migrated: Migrated) -> Iterator[Table]:
    gpus = ngettext("{count} GPU", "{count} GPUs", migrated.gpus).format(count=migrated.gpus)
    if migrated.ranks > 1:
        said = _(
            "{count} on {gpus}; what several of them saw is one fault, repaired once, and the losses are those of all"
        )
        yield _row(_("ranks"), said.format(count=migrated.ranks, gpus=gpus))
    elif migrated.gpus > 1:
        yield _row(_("ranks"), _("1 on {gpus}").format(gpus=gpus))


def _proofs(migrated: Migrated) -> Iterator[Table]:
    if migrated.on_gpu is not None:
        before = _("of the project before") if migrated.by_rehearsal else _("of the CPU")
        yield _row(_("losses"), _("on the GPU: {what}").format(what=_proof(migrated.on_gpu, before)))
    if migrated.on_cpu is not None:
        before = _("before")
        yield _row("", _("on the CPU: {what}").format(what=_proof(migrated.on_cpu, before)))


def _proof(proof: Proof, before: str) -> str:
    if proof.same:
        return ngettext(
            "{count} loss, bit for bit that {before}", "{count} losses, bit for bit those {before}", len(proof.before)
        ).format(count=len(proof.before), before=before)
    return _(
        "{count} losses, those {before} are {other}; they differ from number {first}, by {furthest:.2g} at most"
    ).format(
        count=len(proof.after),
        other=len(proof.before),
        before=before,
        first=(proof.first or 0) + 1,
        furthest=proof.furthest,
    )


def _recipe(adopted: Adopted) -> str:
    """Applied, with what became of the losses; or why not."""
    if not adopted.applied:
        return _("{name} left out: {reason}").format(name=adopted.recipe, reason=adopted.reason)
    gpu, cpu = adopted.on_gpu, adopted.on_cpu
    if (gpu is None or gpu.same) and (cpu is None or cpu.same):
        what = _("all losses as before, bit for bit")
    else:
        parts = [_("on the GPU losses {what}").format(what=_agreement(gpu))] if gpu is not None else []
        parts += [_("on the CPU {what}").format(what=_agreement(cpu))] if cpu is not None else []
        what = ", ".join(parts)
    if adopted.proof is not None:
        what += "; " + _("what it promises: losses {what}").format(what=_agreement(adopted.proof))
    return _("{name} applied: {what}").format(name=adopted.recipe, what=what)


def _agreement(proof: Proof) -> str:
    if proof.same:
        return _("as before, bit for bit")
    percent = f"{100 * proof.furthest:.2g}"
    return _("within {percent} % of those before").format(percent=percent)


def _left(migrated: Migrated) -> Iterator[Text | Table]:
    for finding in migrated.left:
        yield _row(_("left"), f"{finding.id}  {finding.location or ''}  {finding.message}")
        if finding.remedy:
            yield _row("", _("Fix: {remedy}").format(remedy=finding.remedy))


def _written(migrated: Migrated) -> str:
    path = _near(migrated.patch_path)
    if migrated.applied and migrated.backup:
        return _("files changed; what was there before is in {folder}").format(folder=_near(migrated.backup))
    if migrated.applied:
        return _("files changed; git diff shows how")
    if migrated.patch:
        return _("{path}; git apply -p0 {path} makes the changes").format(path=path)
    return _("nothing to change")


def _row(name: str, text: str) -> Table:
    row = Table.grid(padding=0)
    row.add_column(width=_NAME_CELLS)
    row.add_column()
    row.add_row(Text(name, "bold"), Text(printable(text)))
    return row


def _quiet(name: str, finding: Finding) -> Table:
    row = Table.grid(padding=0)
    row.add_column(width=_NAME_CELLS)
    row.add_column()
    row.add_row("", Text(f"{name}: {finding.id} {finding.location or ''} {printable(finding.message)}", QUIET))
    return row


def _near(path: str) -> str:
    return path.removeprefix(os.getcwd() + os.sep)

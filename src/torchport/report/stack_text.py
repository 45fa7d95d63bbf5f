"""A stack for the terminal: what was chosen, why, what was thrown out, and the lock it went into."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from torchport.plan import Stack
from torchport.report import stack_words as words
from torchport.report.printable import printable
from torchport.report.terminal import QUIET, set_in_lines
from torchport.resolved import Compared, Locked, Nearest, Rejected, Resolved, Target
from torchport.text import _, ngettext

_NAME_CELLS = 10
_SHOWN = 8
_SHOWN_REASONS = 3  # of one offer


def render(locked: Locked, *, width: int = 100, color: bool = False) -> str:
    return set_in_lines(_parts(locked), width=width, color=color)


def render_compared(compared: Compared, *, width: int = 100, color: bool = False) -> str:
    """What has drifted from a lock."""
    return set_in_lines(_compared(compared), width=width, color=color)


def title(stack: Stack) -> str:
    """``torch 2.14.1 for CUDA 12.6, Python 3.12, linux-x86_64``."""
    return _("torch {torch} for {backend}, Python {python}, {platform}").format(
        torch=stack.torch, backend=backend(stack), python=stack.python, platform=stack.platform
    )


def backend(stack: Stack) -> str:
    return _("the CPU") if stack.backend == "cpu" else f"CUDA {_cuda(stack.backend)}"


def _cuda(tag: str) -> str:
    digits = tag.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}"


def _parts(locked: Locked) -> Iterator[Text | Table]:
    resolved = locked.resolved
    if resolved.stack is None:
        yield from _impossible(resolved)
        return
    stack = locked.stack or resolved.stack
    yield _row(_("stack"), title(stack), "bold green")
    if resolved.target.cuda != "cpu":
        yield _row("", _target(resolved.target), QUIET)
    companions = [each for each in resolved.stack.packages if each.name != "torch"]
    if companions:
        yield _row(_("with"), ", ".join(f"{each.name} {each.version}" for each in companions))
    libraries = {"CUDA": stack.toolkit, "cuDNN": stack.cudnn, "NCCL": stack.nccl}
    if stack.backend != "cpu" and any(libraries.values()):
        yield _row(_("brings"), ", ".join(f"{name} {version}" for name, version in libraries.items() if version))
    yield Text("")
    yield from _rows(_("why"), [words.why(each) for each in resolved.why])
    yield from _rows(_("not"), _passed_over(resolved, stack))
    if resolved.upgrades:
        yield from _rows(_("newer"), [_offer(each) for each in resolved.upgrades])
    yield from _rows(_("note"), [words.note(each) for each in resolved.notes], "yellow")
    yield from _rows(
        "",
        [
            _("the wheels have {what} {seen}, our table says {said}").format(what=what, seen=seen, said=said)
            for what, said, seen in locked.disagreements
        ],
        "yellow",
    )
    yield from _skipped(resolved)
    yield Text("")
    if locked.failure:
        yield from _rows(_("lock"), [_("not written: {path}").format(path=_near(locked.path))], "bold red")
        yield from _rows("", locked.failure.splitlines())
    else:
        yield from _lock(locked, stack)


def _lock(locked: Locked, stack: Stack) -> Iterator[Table]:
    sizes = [each.size_bytes for each in stack.packages]
    known = sum(size for size in sizes if size is not None)
    size = _("{size:.0f} MB to download").format(size=known / 1e6)
    if None in sizes:
        size = _("at least {size}").format(size=size)
    count = ngettext("{count} package", "{count} packages", len(stack.packages)).format(count=len(stack.packages))
    yield _row(
        _("lock"), _("{path}: {count}, all with hashes, {size}").format(path=_near(locked.path), count=count, size=size)
    )
    built = [each.name for each in stack.packages if each.source]
    if built:
        yield _row("", _("without a wheel, built where it is installed: {names}").format(names=", ".join(built)))
    unhashed = [each.name for each in stack.packages if not each.hashes]
    if unhashed:
        yield _row("", _("from a repository, by its commit: {names}").format(names=", ".join(unhashed)))
    if locked.beside:
        yield _row("", _("beside {names}").format(names=", ".join(locked.beside)), QUIET)
    yield from _rows(_("changed"), _changes(locked))


def _changes(locked: Locked) -> list[str]:
    if locked.changed is None:
        return []
    if not locked.changed:
        return [_("nothing, since it was locked last")]
    lines = [_change(*each) for each in locked.changed[:_SHOWN]]
    more = len(locked.changed) - _SHOWN
    return lines + ([_("and {count} more").format(count=more)] if more > 0 else [])


def _change(name: str, before: str, now: str) -> str:
    if before == now:
        return _("{name} {version}: the same version has other files now").format(name=name, version=now)
    return f"{name}  {before or '—'} → {now or '—'}"


def _target(target: Target) -> str:
    parts = []
    if target.gpu:
        capability = f" ({target.capability})" if target.capability and target.capability != target.gpu else ""
        parts.append(target.gpu + capability)
    if target.driver:
        parts.append(_("driver {version}").format(version=target.driver))
    if target.strict:
        parts.append(_("strict"))
    return _("on {what}").format(what=", ".join(parts)) if parts else _("on a card that is not known")


def _thrown_out(rejected: Sequence[Rejected]) -> list[str]:
    """One line for each kind of reason, by the first reason of each build."""
    groups: dict[str, list[Rejected]] = {}
    oldest = _oldest_driver(rejected)
    for each in rejected:
        first = each.reasons[0]
        kind = "drivers" if oldest and first.kind == "driver" else first.kind
        groups.setdefault(words.rejected(kind, {**dict(first.values), "oldest": oldest}), []).append(each)
    lines = []
    for said, builds in sorted(groups.items(), key=lambda item: -len(item[1])):
        count = ngettext("{count} build", "{count} builds", len(builds)).format(count=len(builds))
        lines.append(f"{count}: {said}  ({_span(builds)})")
    return lines[:_SHOWN]


def _oldest_driver(rejected: Sequence[Rejected]) -> str:
    """The least that any build out for its driver wants; "" where all want the same."""
    wanted = {dict(each.reasons[0].values)["need"] for each in rejected if each.reasons[0].kind == "driver"}
    return min(wanted, key=_numbers) if len(wanted) > 1 else ""


def _passed_over(resolved: Resolved, stack: Stack) -> list[str]:
    """Of what was thrown out the builds that would have gone first; older ones would not have been chosen anyway."""
    torches = {each.torch for each in resolved.rejected}
    newer = {each for each in torches if _numbers(each) >= _numbers(stack.torch)}
    lines = _thrown_out([each for each in resolved.rejected if each.torch in newer])
    older = sum(each.torch not in newer for each in resolved.rejected)
    if older:
        lines.append(ngettext("and {count} older build", "and {count} older builds", older).format(count=older))
    return lines


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _span(builds: Sequence[Rejected]) -> str:
    """Which builds: the torches from first to last, and the tags."""
    torches = list(dict.fromkeys(each.torch for each in builds))
    tags = list(dict.fromkeys(each.backend for each in builds))
    tags.sort(key=lambda tag: (len(tag), tag))
    span = torches[0] if len(torches) == 1 else f"{torches[0]}–{torches[-1]}"
    return span if tags == ["cpu"] else f"{span}, {' '.join(tags)}"


def _impossible(resolved: Resolved) -> Iterator[Text | Table]:
    yield _row(_("stack"), _never_built(resolved) or _("there is none"), "bold red")
    yield _row("", _target(resolved.target), QUIET)
    yield from _rows(_("nearest"), [_offer(each) for each in resolved.nearest], "green")
    yield Text("")
    yield from _rows(_("not"), _thrown_out(resolved.rejected))
    yield from _rows(_("note"), [words.note(each) for each in resolved.notes], "yellow")


def _never_built(resolved: Resolved) -> str:
    """The pair of torch and CUDA that was asked for, where nobody ever built it."""
    asked = {dict(each.values)["asked"] for near in resolved.nearest for each in near.instead if each.kind == "torch"}
    cuda = {dict(each.values)["asked"] for near in resolved.nearest for each in near.instead if each.kind == "cuda"}
    kinds = [{each.kind for each in one.reasons} for one in resolved.rejected]
    if not asked or not cuda or not all(each & {"torch", "cuda"} for each in kinds):
        return ""
    return _("{torch} with CUDA {cuda} was never built").format(torch=", ".join(sorted(asked)), cuda=cuda.pop())


def _offer(near: Nearest) -> str:
    stack = near.stack
    what = f"torch {stack.torch}+{stack.backend}, Python {stack.python}"
    given_up = [words.instead(each) for each in near.instead]
    if len(given_up) > _SHOWN_REASONS:
        more = len(given_up) - _SHOWN_REASONS
        given_up = [*given_up[:_SHOWN_REASONS], _("and {count} more").format(count=more)]
    return f"{what}: {', '.join(given_up)}"


def _skipped(resolved: Resolved) -> Iterator[Table]:
    lines = [f"{path}: {line}" for path, line in resolved.wanted.skipped]
    if len(lines) > _SHOWN:
        lines = [*lines[:_SHOWN], _("and {count} more").format(count=len(lines) - _SHOWN)]
    yield from _rows(_("left out"), lines, QUIET)


def _compared(compared: Compared) -> Iterator[Text | Table]:
    for stack, found in compared.stacks:
        yield _row(_("stack"), title(stack), "bold")
        if compared.python:
            yield _row("", _("held against {python}").format(python=_near(compared.python)), QUIET)
        else:
            yield _row("", _("the project has no environment yet: what is installed was not compared"), QUIET)
        lines = [words.drift(each) for each in found]
        more = len(lines) - 3 * _SHOWN
        if more > 0:
            lines = [*lines[: 3 * _SHOWN], _("and {count} more").format(count=more)]
        yield from _rows(_("drifted"), lines, "yellow")
    if compared.elsewhere:
        yield _row(_("elsewhere"), ", ".join(compared.elsewhere), QUIET)
    yield Text("")
    count = sum(len(found) for _stack, found in compared.stacks)
    if not compared.stacks:
        yield Text(_("{path} has no stack for this machine").format(path=_near(compared.path)), "bold yellow")
    elif count:
        said = ngettext("{count} drift from {path}", "{count} drifts from {path}", count)
        yield Text(said.format(count=count, path=_near(compared.path)), "bold yellow")
    else:
        yield Text(_("nothing has drifted from {path}").format(path=_near(compared.path)), "bold green")


def _rows(name: str, lines: Sequence[str], style: str = "") -> Iterator[Table]:
    for number, line in enumerate(lines):
        yield _row("" if number else name, line, style)


def _row(name: str, text: str, style: str = "") -> Table:
    row = Table.grid(padding=0)
    row.add_column(width=_NAME_CELLS)
    row.add_column()
    row.add_row(Text(name, "bold"), Text(printable(text), style))
    return row


def _near(path: str) -> str:
    return path.removeprefix(os.getcwd() + os.sep)

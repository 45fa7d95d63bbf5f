"""The choice of a stack: every build of torch is judged, those that are left are sorted. Pure: no file, no machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchport.plan import Package, Stack
from torchport.resolved import Nearest, Reason, Rejected, Resolved, Target, Wanted
from torchport.stack.architectures import Code
from torchport.stack.judge import USUAL_PYTHON, Candidate, judge, reason
from torchport.stack.nearest import nearest
from torchport.stack.releases import CPU, Table, cuda_of, dotted, numbers
from torchport.stack.versions import admits, order


def solve(wanted: Wanted, target: Target, table: Table) -> Resolved:
    """The best stack for a target, with every reason against every other build.

    Best is the torch that the project's own lock has, else the newest; of its builds the one that PyPI has, then
    the newest CUDA. A name of torch's interface that no torch of the table has any more keeps nothing out: such
    are lifted, and noted.
    """
    backends = [build for build in table.builds if (build.backend == CPU) == (target.cuda == CPU)]
    candidates = [judge(build, wanted, target, table) for build in backends]
    notes: list[Reason] = []
    gone = [gate for gate in wanted.api if gate.gone]
    if gone and all(each.reasons for each in candidates):
        lifted = [_lifted(each) for each in candidates]
        if any(not each.reasons for each in lifted):
            candidates = lifted
            notes = [reason("api-lifted", name=gate.name, place=gate.place, gone=gate.gone) for gate in gone]
    left = sorted((each for each in candidates if not each.reasons), key=lambda each: _key(each, wanted, target))
    rejected = tuple(
        Rejected(each.build.torch, each.build.backend, each.reasons) for each in candidates if each.reasons
    )
    if not left:
        near = tuple(
            Nearest(stack_of(each, wanted, target, table), each.reasons)
            for each in nearest([_lifted(each) for each in candidates], wanted, target, table)
        )
        return Resolved(wanted, target, None, (), _target_notes(target), rejected, near)
    best = left[0]
    stack = stack_of(best, wanted, target, table)
    return Resolved(
        wanted,
        target,
        stack,
        tuple(_why(best, left, candidates, wanted, target)),
        (*notes, *_notes(best, stack, candidates, target, table)),
        rejected,
        upgrades=tuple(_upgrades(best, candidates, wanted, target, table)),
    )


def stack_of(candidate: Candidate, wanted: Wanted, target: Target, table: Table) -> Stack:
    """What a candidate is as a stack, with torch and its companions and nothing else in it yet."""
    build = candidate.build
    processor = target.platform.rpartition("-")[2]
    index = build.index(processor)
    local = "" if index is None else f"+{build.backend}"
    packages = [Package("torch", build.torch + local)]
    packages += [Package(name, version) for name, version in candidate.companions]
    by_minor = target.strict or candidate.code is Code.PTX
    return Stack(
        python=candidate.python or "",
        platform=target.platform,
        torch=build.torch,
        backend=build.backend,
        packages=tuple(packages),
        toolkit=build.toolkit,
        cudnn=build.cudnn,
        nccl=build.nccl,
        architectures=build.architectures.get(processor) or (),
        ptx=build.ptx,
        driver=build.strict if by_minor else build.floor,
        gpu=target.gpu,
        capability=target.capability,
        index=index,
        glibc=build.release.glibc,
        builds=wanted.builds,
        requirements=tuple(asked.text for asked in wanted.asked),
    )


def companion_index(stack: Stack, name: str, version: str, table: Table) -> str | None:
    """Where a companion is found: with torch, but for one that has no compiled part."""
    return None if stack.index is None or table.companions[name, version].pure else stack.index


def _key(candidate: Candidate, wanted: Wanted, target: Target) -> tuple[bool, tuple[int, ...], bool, tuple[int, ...]]:
    build = candidate.build
    locked = [version for name, version, _ in wanted.locked if name == "torch"]
    default = build.release.pypi.get(target.platform.rpartition("-")[2]) == build.backend
    return (
        bool(locked) and not any(admits(f"=={each}", f"{build.torch}+{build.backend}") for each in locked),
        _down(numbers(build.torch)),
        not default,
        _down(cuda_of(build.backend)),
    )


def _down(parts: Iterable[int]) -> tuple[int, ...]:
    return tuple(-part for part in parts)


def _lifted(candidate: Candidate) -> Candidate:
    """A candidate as if the project did not use what torch took away; what is not there yet stays a reason."""
    kept = tuple(each for each in candidate.reasons if each.kind != "api" or "gone" not in dict(each.values))
    return replace(candidate, reasons=kept)


def _why(
    best: Candidate, left: Sequence[Candidate], candidates: Sequence[Candidate], wanted: Wanted, target: Target
) -> Iterable[Reason]:
    build = best.build
    version = order(build.torch)
    newer = {each.build.torch for each in candidates if order(each.build.torch) > version}
    locked = next(
        (path for name, have, path in wanted.locked if name == "torch" and have.startswith(build.torch)), None
    )
    if locked:
        yield reason("locked", torch=build.torch, path=locked)
    elif newer:
        yield reason("newest-left", torch=build.torch, newer=len(newer))
    else:
        yield reason("newest", torch=build.torch)
    others = [each.build.backend for each in left if each.build.torch == build.torch and each is not best]
    if build.backend != CPU:
        default = build.index(target.platform.rpartition("-")[2]) is None
        kind = "default-build" if default else "newest-build" if others else "only-build"
        yield reason(kind, backend=build.backend, others=" ".join(others))
    asked = [each for each in wanted.python if each.text]
    if best.python == target.python:
        yield reason("python-now", python=best.python)
    elif asked:
        yield reason("python-asked", python=best.python, asked=asked[0].text, path=asked[0].path)
    else:
        yield reason("python-usual" if best.python == USUAL_PYTHON else "python-newest", python=best.python)


def _target_notes(target: Target) -> tuple[Reason, ...]:
    if target.cuda == CPU:
        return ()
    missing = [reason("gpu-missing")] if target.capability is None else []
    return (*missing, *([reason("driver-missing")] if target.driver is None else []))


def _notes(
    best: Candidate, stack: Stack, candidates: Sequence[Candidate], target: Target, table: Table
) -> Iterable[Reason]:
    build = best.build
    if build.backend != CPU:
        yield from _gpu_notes(best, stack, target, table)
    newer = [each for each in candidates if numbers(each.build.torch) > numbers(build.torch)]
    held = {each.values for one in newer for each in one.reasons if each.kind == "api"}
    yield from (Reason("api-holds", values) for values in sorted(held))
    if build.release.uploaded:
        yield reason("uploaded", torch=build.torch, dates=", ".join(build.release.uploaded))
    for specifier, requirement in table.constraints:
        if admits(specifier, build.torch):
            yield reason("constraint", torch=build.torch, requirement=requirement)
    if stack.builds:
        codes = target.capability or " ".join(stack.architectures)
        yield reason("builds", folders=", ".join(stack.builds), codes=codes)


def _gpu_notes(best: Candidate, stack: Stack, target: Target, table: Table) -> Iterable[Reason]:
    build, cuda = best.build, dotted(cuda_of(best.build.backend))
    if target.capability is None:
        yield reason("gpu-missing")
    if target.driver is None:
        yield reason("driver-missing", need=stack.driver)
    elif build.strict is None or numbers(target.driver) < numbers(build.strict)[: len(numbers(target.driver))]:
        yield reason("driver-minor", have=target.driver, own=build.strict, cuda=cuda)
    if best.code is Code.PTX:
        yield reason("ptx", ptx=build.ptx, capability=target.capability)
    below, branch = table.last_branch
    if target.capability is not None and numbers(target.capability) < numbers(below):
        yield reason("last-branch", branch=branch, capability=target.capability)
    if build.evidence not in ("binary", None) and target.capability is not None:
        yield reason("evidence", evidence=build.evidence, backend=build.backend)


def _upgrades(
    best: Candidate, candidates: Sequence[Candidate], wanted: Wanted, target: Target, table: Table
) -> Iterable[Nearest]:
    """What only the driver keeps out: the best, where its torch is newer than the chosen one."""
    kinds = {"driver", "driver-ptx"}
    kept = [each for each in candidates if each.reasons and {one.kind for one in each.reasons} <= kinds]
    kept = [each for each in kept if numbers(each.build.torch) > numbers(best.build.torch)]
    for each in sorted(kept, key=lambda one: _key(one, wanted, target))[:1]:
        yield Nearest(stack_of(each, wanted, target, table), each.reasons)

"""What speaks against one build of torch: facts of the machine, and wishes of the project and its user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchport.resolved import Asked, Reason, Target, Wanted
from torchport.stack.architectures import Code, code_for
from torchport.stack.releases import COMPANIONS, CPU, Build, Table, cuda_of, dotted, numbers
from torchport.stack.versions import admits, admits_python, applies, order, requirement

# A wish can be given up; all other kinds are facts.
WISHES = ("torch", "cuda", "python", "api", *COMPANIONS)

# The newest Python for which nearly all packages have wheels; a newer one is taken where this is not let in.
USUAL_PYTHON = "3.12"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One build with the Python and the companions it would get, and every reason against it."""

    build: Build
    python: str | None
    companions: tuple[tuple[str, str], ...]
    code: Code
    reasons: tuple[Reason, ...]


def reason(kind: str, **values: object) -> Reason:
    return Reason(kind, tuple((name, str(value)) for name, value in values.items()))


def judge(build: Build, wanted: Wanted, target: Target, table: Table) -> Candidate:
    """All reasons against a build, not only the first. The Python is the best of those that meet what is asked."""
    processor = target.platform.rpartition("-")[2]
    code, facts = _facts(build, target, processor, table)
    pythons = [each for each in build.release.pythons if not _refused_python(wanted, each)]
    reasons = list(facts)
    if not pythons:
        reasons.append(_python(build, wanted))
    ranked = sorted(pythons or build.release.pythons, key=lambda each: _rank(each, target))
    best: Candidate | None = None
    for python in ranked:
        companions, missing = _companions(build, wanted, python, processor, table)
        wishes = (*_torch(build, wanted, python, processor), *_cuda(build, target, wanted), *_api(build, wanted))
        found = Candidate(build, python, companions, code, (*reasons, *wishes, *missing))
        if best is None or len(found.reasons) < len(best.reasons):
            best = found
    assert best is not None, "a release with no Python"
    return best


def _rank(python: str, target: Target) -> tuple[bool, bool, tuple[int, ...]]:
    """The Python that the project has now, then the usual one and older, newest first, then newer ones."""
    version = numbers(python)
    newer = version > numbers(USUAL_PYTHON)
    return (python != target.python, newer, version if newer else tuple(-part for part in version))


def _refused_python(wanted: Wanted, python: str) -> Asked | None:
    return next((asked for asked in wanted.python if not admits_python(asked.text, python)), None)


def _python(build: Build, wanted: Wanted) -> Reason:
    have = build.release.pythons
    refusing = next(asked for asked in wanted.python if not all(admits_python(asked.text, each) for each in have))
    return reason("python", have=f"{have[0]}–{have[-1]}", asked=refusing.text, path=refusing.path)


def _facts(build: Build, target: Target, processor: str, table: Table) -> tuple[Code, list[Reason]]:
    """What the machine says: it cannot be given up."""
    code, reasons = Code.NATIVE, []
    if not build.seen:
        reasons.append(reason("unseen", backend=build.backend))
    if build.backend == CPU:
        return code, reasons
    codes = build.architectures.get(processor)
    if codes is None:
        cpu_only = build.release.pypi.get(processor) == CPU
        reasons.append(reason("platform-cpu" if cpu_only else "platform", processor=processor, backend=build.backend))
    elif target.capability is not None:
        code = code_for(target.capability, codes, build.ptx, cuda_of(build.backend), table.rule)
        if code is Code.NONE:
            reasons.append(
                reason("architecture", capability=target.capability, codes=" ".join(codes), backend=build.backend)
            )
    reasons += _driver(build, target, code)
    return code, reasons


def _driver(build: Build, target: Target, code: Code) -> Iterator[Reason]:
    """By CUDA's major version; by the minor one where that is wanted, or where PTX has to be compiled."""
    if target.driver is None:
        return
    by_minor = target.strict or code is Code.PTX
    needed = build.strict if by_minor else build.floor
    cuda = dotted(cuda_of(build.backend))
    if needed is None:
        yield reason("driver-unknown", cuda=cuda, driver=target.driver)
    elif numbers(target.driver) < numbers(needed)[: len(numbers(target.driver))]:
        kind = "driver-ptx" if code is Code.PTX and not target.strict else "driver"
        yield reason(kind, cuda=cuda if by_minor else f"{cuda_of(build.backend)[0]}.x", need=needed, have=target.driver)


def _torch(build: Build, wanted: Wanted, python: str, processor: str) -> Iterator[Reason]:
    version = f"{build.torch}+{build.backend}"
    for asked in wanted.asked:
        if asked.name == "torch" and applies(asked, python, processor):
            specifiers = str(requirement(asked.text).specifier)
            if not admits(specifiers, version):
                yield reason("torch", asked=asked.text, path=asked.path)


def _cuda(build: Build, target: Target, wanted: Wanted) -> Iterator[Reason]:
    """What the user asks goes before what the files say."""
    asked, path = (target.cuda, "--cuda") if target.cuda else wanted.cuda or (None, "")
    if asked and build.backend != CPU and numbers(asked) != cuda_of(build.backend):
        yield reason("cuda", asked=asked, path=path, backend=build.backend)


def _api(build: Build, wanted: Wanted) -> Iterator[Reason]:
    version = order(build.torch)
    for gate in wanted.api:
        if gate.since and version < order(gate.since):
            yield reason("api", name=gate.name, place=gate.place, since=gate.since)
        if gate.gone and version >= order(gate.gone):
            yield reason("api", name=gate.name, place=gate.place, gone=gate.gone)


def wished(wanted: Wanted) -> tuple[str, ...]:
    """The companions of torch that the project needs."""
    names = {asked.name for asked in wanted.asked} | {name for name, _ in wanted.imported}
    return tuple(name for name in COMPANIONS if name in names)


def _companions(
    build: Build, wanted: Wanted, python: str, processor: str, table: Table
) -> tuple[tuple[tuple[str, str], ...], list[Reason]]:
    """The newest of each that goes with this torch and Python and that the project lets in."""
    chosen, missing = [], []
    for name in wished(wanted):
        pairs = build.release.companions[name]
        fitting = [each for each in pairs if python in table.companions[name, each].pythons]
        asked = [each for each in wanted.asked if each.name == name and applies(each, python, processor)]
        refusing = next((each for each in asked if not any(_lets_in(each, one, build) for one in fitting)), None)
        left = [one for one in fitting if all(_lets_in(each, one, build) for each in asked)]
        if left:
            chosen.append((name, left[-1]))
        elif not pairs:
            missing.append(reason(name, ended=_last_torch(name, table)))
        elif not fitting:
            missing.append(reason(name, have=" ".join(pairs), python=python))
        else:
            refused = refusing or asked[0]
            missing.append(reason(name, have=" ".join(fitting), asked=refused.text, path=refused.path))
    return tuple(chosen), missing


def _lets_in(asked: Asked, version: str, build: Build) -> bool:
    return admits(str(requirement(asked.text).specifier), f"{version}+{build.backend}")


def _last_torch(name: str, table: Table) -> str:
    return [version for version, release in table.releases.items() if release.companions[name]][-1]

"""What is no longer as a lock has it: the project's requirements, what is installed, the driver and the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchport.plan import Stack
from torchport.resolved import Drift, Target, Wanted
from torchport.stack.architectures import Code, code_for
from torchport.stack.releases import CPU, Table, cuda_of, numbers
from torchport.stack.versions import admits, normal


def drifts(
    stack: Stack,
    wanted: Wanted,
    target: Target,
    table: Table,
    installed: Mapping[str, str] | None,
) -> tuple[Drift, ...]:
    """Everything that has drifted, the project first. ``installed`` are versions by name, None where nobody looked.

    A GPU stack is held against the card and the driver of ``target`` where these are known.
    """
    return (
        *_requirements(stack, wanted),
        *_python(stack, target),
        *_installed(stack, installed),
        *_gpu(stack, target, table),
    )


def here(stacks: Sequence[Stack], target: Target, gpu: bool) -> tuple[Stack, ...]:
    """The stacks of a lock that are for a machine: of its platform; those for the CPU alone where it has no card."""
    fitting = [each for each in stacks if each.platform == target.platform]
    return tuple(each for each in fitting if gpu or each.backend == CPU)


def _drift(kind: str, **values: str) -> Drift:
    return Drift(kind, tuple(values.items()))


def _requirements(stack: Stack, wanted: Wanted) -> Iterator[Drift]:
    now = {asked.text: asked for asked in wanted.asked}
    for text, asked in now.items():
        if text not in stack.requirements:
            yield _drift("asked-since", asked=text, path=asked.path)
    for text in stack.requirements:
        if text not in now:
            yield _drift("asked-no-more", asked=text)


def _python(stack: Stack, target: Target) -> Iterator[Drift]:
    if target.python is not None and target.python != stack.python:
        yield _drift("python", locked=stack.python, have=target.python)


def _installed(stack: Stack, installed: Mapping[str, str] | None) -> Iterator[Drift]:
    """Missing packages and other versions. What is installed beside them is nobody's business."""
    if installed is None:
        return
    have = {normal(name): version for name, version in installed.items()}
    for package in stack.packages:
        if not package.hashes:
            continue
        version = have.get(package.name)
        if version is None:
            yield _drift("missing", name=package.name, locked=package.version)
        elif not _same(package.version, version):
            yield _drift("version", name=package.name, locked=package.version, have=version)


def _same(locked: str, have: str) -> bool:
    """A tag counts where the lock has one: "2.14.1+cu126" is not "2.14.1+cpu", but both are "2.14.1"."""
    return admits(f"=={locked}", have)


def _gpu(stack: Stack, target: Target, table: Table) -> Iterator[Drift]:
    if stack.backend == CPU:
        return
    have = target.driver
    if have and stack.driver and numbers(have) < numbers(stack.driver)[: len(numbers(have))]:
        yield _drift("driver", need=stack.driver, have=have)
    if target.capability and stack.architectures:
        code = code_for(target.capability, stack.architectures, stack.ptx, cuda_of(stack.backend), table.rule)
        if code is Code.NONE:
            yield _drift(
                "card", card=target.gpu or "", capability=target.capability, codes=" ".join(stack.architectures)
            )

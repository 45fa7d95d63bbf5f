"""What counts as drift from a lock, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchport.plan import Package, Stack
from torchport.resolved import Asked, Target, Wanted
from torchport.stack.drift import drifts, here
from torchport.stack.releases import table

GPU = Stack(
    "3.12",
    "linux-x86_64",
    "2.14.1",
    "cu126",
    packages=(Package("torch", "2.14.1+cu126", ("sha256:a",)), Package("typing-extensions", "4.1", ("sha256:b",))),
    architectures=("5.0", "7.0", "8.0"),
    driver="525.60.13",
    requirements=("torch>=2",),
)
WANTED = Wanted(asked=(Asked("torch", "torch>=2", "requirements.txt"),))
RIGHT = {"torch": "2.14.1+cu126", "typing_extensions": "4.1", "black": "24.1"}


@pytest.mark.parametrize(
    ("installed", "target", "kinds"),
    [
        (RIGHT, Target(), []),
        (None, Target(), []),
        ({**RIGHT, "torch": "2.14.1+cpu"}, Target(), ["version"]),
        ({**RIGHT, "torch": "2.14.1"}, Target(), ["version"]),
        ({"torch": "2.14.1+cu126"}, Target(), ["missing"]),
        (RIGHT, Target(python="3.12"), []),
        (RIGHT, Target(python="3.11"), ["python"]),
        (RIGHT, Target(driver="525.60.13"), []),
        (RIGHT, Target(driver="525"), []),
        (RIGHT, Target(driver="470.42"), ["driver"]),
        (RIGHT, Target(capability="8.6"), []),
        (RIGHT, Target(capability="9.0", gpu="h100"), ["card"]),
    ],
)
def test_machine(installed: dict[str, str] | None, target: Target, kinds: list[str]) -> None:
    assert [each.kind for each in drifts(GPU, WANTED, target, table(), installed)] == kinds


def test_a_tag_that_the_lock_does_not_have_is_no_drift() -> None:
    plain = replace(GPU, packages=(Package("torch", "2.14.1", ("sha256:a",)),))
    assert drifts(plain, WANTED, Target(), table(), {"torch": "2.14.1+cu130"}) == ()


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        (["torch>=2"], []),
        (["torch>=2", "rich"], ["asked-since"]),
        (["torch>=2.1"], ["asked-since", "asked-no-more"]),
        ([], ["asked-no-more"]),
    ],
)
def test_project(texts: list[str], kinds: list[str]) -> None:
    wanted = Wanted(asked=tuple(Asked(text.split(">")[0], text, "requirements.txt") for text in texts))
    assert [each.kind for each in drifts(GPU, wanted, Target(), table(), None)] == kinds


def test_a_cpu_stack_has_no_driver_to_drift_from() -> None:
    cpu = replace(GPU, backend="cpu", packages=())
    assert drifts(cpu, WANTED, Target(driver="390.1", capability="9.0"), table(), {}) == ()


def test_which_stacks_are_for_here() -> None:
    cpu, board = replace(GPU, backend="cpu"), replace(GPU, platform="linux-aarch64")
    assert here((GPU, cpu, board), Target(), gpu=True) == (GPU, cpu)
    assert here((GPU, cpu, board), Target(), gpu=False) == (cpu,)

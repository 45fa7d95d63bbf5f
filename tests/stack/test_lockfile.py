"""What torchport.lock says comes back as it was."""

from __future__ import annotations

import dataclasses

import pytest

from torchport.plan import Package, Stack, pinned
from torchport.stack.lockfile import LockError, read, together, write

TORCH = Package("torch", "2.14.1+cu126", ("sha256:aa", "sha256:bb"), "https://x/torch.whl", 555_000_000)
ODD = Package('od"d\\', "1.0\x7f", ("sha256:cc",), source=True)
GPU = Stack(
    python="3.12",
    platform="linux-x86_64",
    torch="2.14.1",
    backend="cu126",
    packages=(ODD, TORCH),
    architectures=("7.0", "9.0"),
    requirements=("torch>=2.1 ; sys_platform == 'linux'", "numpy"),
)
CPU = Stack("3.12", "linux-x86_64", "2.14.1", "cpu")


@pytest.mark.parametrize("stacks", [(), (CPU,), (CPU, GPU)])
def test_what_is_written_is_read(stacks: tuple[Stack, ...]) -> None:
    assert read(write(stacks)) == stacks


def test_the_order_of_the_stacks_changes_no_byte() -> None:
    assert write((CPU, GPU)) == write((GPU, CPU))


def test_a_new_stack_takes_the_place_of_its_like() -> None:
    newer = dataclasses.replace(CPU, torch="2.15.0")
    assert set(together((CPU, GPU), newer)) == {newer, GPU}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema = [", "torchport.lock: "),
        ("schema = 2", "schema 2"),
        ("", "schema None"),
        ('schema = 1\n[[stack]]\npython = "3.12"', "not as torchport writes it"),
        ("schema = 1\nstack = 3", "not as torchport writes it"),
        ('schema = 1\n[[stack]]\ncolour = "red"', "colour"),
        ('schema = 1\n[[stack]]\npython = 3.12\nplatform = "a"\ntorch = "b"\nbackend = "c"', "python = 3.12"),
    ],
)
def test_a_file_that_is_no_lock_is_refused(text: str, says: str) -> None:
    with pytest.raises(LockError) as raised:
        read(text)
    assert says in str(raised.value)


def test_a_pinned_file_has_every_hash() -> None:
    assert pinned(dataclasses.replace(GPU, packages=(TORCH, ODD))) == (
        "torch==2.14.1+cu126 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        'od"d\\==1.0\x7f \\\n    --hash=sha256:cc\n'
    )

"""What a test of a device rule is made of: refused and legal snippets, and CUDA's texts by version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from torchport.inside.vcuda import virtual_cuda

CUDA = "cuda:0"
OTHER = "cuda:1"


# Looked up at every call: a session replaces torch's factories, and these modules are imported before it.
def ones(*size: Any, **options: Any) -> torch.Tensor:
    return torch.ones(*size, **options)


def zeros(*size: Any, **options: Any) -> torch.Tensor:
    return torch.zeros(*size, **options)


def arange(*bounds: Any, **options: Any) -> torch.Tensor:
    return torch.arange(*bounds, **options)


def torch_at_least(minor: str) -> bool:
    """Whether the installed torch is ``minor`` ("2.8") or newer."""
    installed = torch.__version__.split("+")[0].split(".")[:2]
    return tuple(map(int, installed)) >= tuple(map(int, minor.split(".")))


def exact_same(argument: str, on: str, others: str, method: str) -> str:
    """Text of the check that torchgen writes in front of CUDA kernels (rules 1 and 2)."""
    if torch_at_least("2.8"):
        return (
            f"Expected all tensors to be on the same device, but got {argument} is on {on}, different from "
            "other "
            f"tensors on {others} (when checking argument in method {method})"
        )
    return (
        f"Expected all tensors to be on the same device, but found at least two devices, {others} and {on}! "
        f"(when checking argument for argument {argument} in method {method})"
    )


def two_devices(first: str = CUDA, second: str = "cpu") -> str:
    """Text of TensorIterator (rule 17)."""
    found = f"found at least two devices, {first} and {second}!"
    return f"Expected all tensors to be on the same device, but {found}"


@dataclass(frozen=True, slots=True)
class Refused:
    """A snippet that CUDA refuses, with its words. ``part`` means that ``text`` is only a part of them."""

    row: int
    name: str
    snippet: Callable[[str], object]
    text: str
    error: type[BaseException] = RuntimeError
    part: bool = False
    since: str = "2.4"

    def __str__(self) -> str:
        return f"{self.row}-{self.name}"

    def check(self) -> None:
        _skip_if_older(self.since)
        with pytest.raises(self.error) as caught:
            self.snippet(CUDA)
        text = str(caught.value)
        assert (self.text in text) if self.part else (text == self.text), text


@dataclass(frozen=True, slots=True)
class Legal:
    """A snippet that CUDA accepts; every tensor it returns is on ``device``."""

    row: int
    name: str
    snippet: Callable[[str], object]
    device: str = CUDA
    since: str = "2.4"

    def __str__(self) -> str:
        return f"{self.row}-{self.name}"

    def check(self, session: Any) -> None:
        _skip_if_older(self.since)
        result = self.snippet(CUDA)
        assert {str(t.device) for t in tensors_in(result)} <= {self.device}
        assert faults(session) == []


def _skip_if_older(since: str) -> None:
    if not torch_at_least(since):
        pytest.skip(f"torch {since} and newer")


def agree(snippet: Callable[[str], object], device: str, *, anywhere: bool = False) -> None:
    """``snippet`` gives on a GPU, without a finding, the very numbers that it gives on the CPU.

    Unless ``anywhere``, every tensor it returns is on ``device``.
    """
    torch.manual_seed(0)
    expected = [plain(t.detach()) for t in tensors_in(snippet("cpu"))]
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=True) as session:
        torch.manual_seed(0)
        result = list(tensors_in(snippet(device)))
        assert faults(session) == []
        assert anywhere or {str(t.device) for t in result} <= {device}
        numbers = [plain(t.detach().cpu()) for t in result]
    assert len(numbers) == len(expected)
    for got, wanted in zip(numbers, expected, strict=True):
        assert got.dtype == wanted.dtype
        assert torch.equal(got.nan_to_num(7.5), wanted.nan_to_num(7.5))


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy of real numbers, to be compared."""
    dense = tensor.clone() if tensor.layout is torch.strided else tensor.to_dense()
    return torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense


def tensors_in(value: object) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples, lists and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def faults(session: Any) -> list[str]:
    """What the session found that is a fault on CUDA (R1, R3, R4); the rest is advice or remarks."""
    return [f"{f.id} {f.fields}" for f in session.findings if f.id[:2] in ("R1", "R3", "R4")]

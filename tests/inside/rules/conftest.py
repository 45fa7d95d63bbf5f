"""A strict session with two virtual GPUs for every test of the rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from torchport.inside.vcuda import virtual_cuda

sys.path.insert(0, str(Path(__file__).parent))  # for rule_cases and the tables beside it


@pytest.fixture
def session() -> Iterator[Any]:
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=True) as session:
        torch.manual_seed(0)
        yield session


@pytest.fixture
def healing() -> Iterator[Any]:
    with virtual_cuda(gpus=2, gpu="a100-80gb", strict=False) as session:
        torch.manual_seed(0)
        yield session

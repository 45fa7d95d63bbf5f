"""Optimizers and gradient clipping sort their tensors by device: in C++, which sees host memory only."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches


def install(patches: Patches, machine: Machine) -> None:
    """Splits the groups that torch makes by the cards that their tensors are on."""
    original = torch._C._group_tensors_by_device_and_dtype

    @functools.wraps(original)
    def group(lists: Any, with_indices: bool = False) -> Any:
        found = original(lists, True)
        result: dict[Any, Any] = {}
        for (device, dtype), (columns, indices) in found.items():
            for position, index in enumerate(indices):
                key = (_device(device, columns[0][position]), dtype)
                rows, kept = result.setdefault(key, ([[] for _ in columns], []))
                for row, column in zip(rows, columns, strict=True):
                    if column:
                        row.append(column[position])
                kept.append(index)
        if not with_indices:
            return {key: (rows, []) for key, (rows, _) in result.items()}
        return result

    patches.set(torch._C, "_group_tensors_by_device_and_dtype", group)


def _device(physical: torch.device, tensor: Any) -> torch.device:
    index = tags.device_of(tensor) if tensor is not None else tags.HOST
    return torch.device("cuda", index) if index >= 0 else physical

"""What makes the host wait, and what crosses the bus: counted with the user's line.

Follows the table of device_rules §7: c10's ``warn_or_error_on_sync`` is called by item(), blocking copies, nonzero,
unique and mode; other operators wait without telling ``set_sync_debug_mode``.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.builds import TORCH
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.operators import Operator

_DEBUG_TEXT = "called a synchronizing CUDA operation"

# Older torch moves what it found in a mask on the host as it moves any index there; newer, from pinned memory
# (expandTensors in ATen/native/IndexingUtils.h of the wheels).
_MASK_WAITS = TORCH < (2, 9)


def note(machine: Machine, operator: Operator) -> None:
    """Counts one wait of an operator; honours torch.cuda.set_sync_debug_mode."""
    waited(machine, operator.packet.removeprefix("aten::"), reported=operator.sync != 1)


def waited(machine: Machine, name: str, reported: bool = True) -> None:
    """Counts one wait. ``reported``: whether CUDA's own debug mode sees it."""
    key = (machine.places.here(), machine.local.waiter or name)
    machine.syncs[key] = machine.syncs.get(key, 0) + 1
    machine.sync_count += 1
    if reported and machine.sync_debug_mode == 1:
        warnings.warn(_DEBUG_TEXT, UserWarning, stacklevel=4)
    elif reported and machine.sync_debug_mode == 2:
        raise RuntimeError(_DEBUG_TEXT)


def transfer(machine: Machine, source: Any, from_device: int, to_device: int, non_blocking: bool) -> None:
    """Counts the bytes of a copy between devices, and the wait that a blocking one is."""
    if machine.local.quiet:
        return
    host_to_device = from_device == tags.HOST
    device_to_host = to_device == tags.HOST
    tag = tags.tag_of(source)
    pinned = bool(host_to_device and tag is not None and tag.pinned)
    direction = "h2d" if host_to_device else "d2h" if device_to_host else "d2d"
    nbytes = source.numel() * source.element_size()
    key = (machine.places.here(), direction, pinned, non_blocking)
    count, total = machine.transfers.get(key, (0, 0))
    machine.transfers[key] = (count + 1, total + nbytes)
    counts = machine.moved[direction]
    counts[0] += 1
    counts[1] += nbytes
    if direction != "d2d" and not non_blocking:
        waited(machine, f"copy {direction}")


def indexing_waits(indices: Any, value: Any, device: int) -> bool:
    """Whether ``x[indices]`` or ``x[indices] = value`` waits, for x on a card."""
    for index in indices:
        if index is None:
            continue
        mask = index.dtype in (torch.bool, torch.uint8)
        host = tags.device_of(index) == tags.HOST
        if mask and not host:
            return value is None or value.numel() != 1
        if host and (_MASK_WAITS or not mask):
            return True
    return False

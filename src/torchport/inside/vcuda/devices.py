"""Device arguments: what the user may write, as the index of a card."""

from __future__ import annotations

from typing import Any

import torch

from torchport.inside.vcuda import cuda
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.tags import HOST

OTHER = -5  # meta and the devices of other back ends: left to torch

_parsed: dict[Any, tuple[str, int | None]] = {}


def index_of(machine: Machine, device: Any) -> int:
    """Index of the card that a ``device=`` argument names; HOST for the CPU, OTHER for what is not ours.

    A card that the machine lacks raises as CUDA does; a string that is no device raises torch's own error.
    """
    try:
        kind, index = _parsed[device]
    except KeyError:
        if isinstance(device, int) and not isinstance(device, bool):
            kind, index = "cuda", device
        else:
            parsed = torch.device(device)
            kind, index = parsed.type, parsed.index
        _parsed[device] = kind, index
    if kind == "cpu":
        return HOST
    if kind != "cuda":
        return OTHER
    if index is None:
        index = machine.current
    return cuda.check_index(machine, index)


def default_index(machine: Machine) -> int:
    """Device of a factory called without one: that of ``with torch.device(…)``, of the default, or the host."""
    if torch._C._len_torch_function_stack():
        from torch.utils._device import DeviceContext

        for position in range(torch._C._len_torch_function_stack() - 1, -1, -1):
            mode = torch._C._get_function_stack_at(position)
            if isinstance(mode, DeviceContext):
                return index_of(machine, mode.device)
    if machine.default_cuda:
        return index_of(machine, "cuda")
    return HOST

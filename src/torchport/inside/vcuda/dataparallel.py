"""Several cards in one process: what ``nn.DataParallel``, ``torch.cuda.comm`` and ``torch.cuda.nccl`` call in C++.

torch's own Python stays; a CPU wheel lacks the functions below it, and those of a CUDA build ask for a driver.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import accumulate, chain
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import torch
from torch._utils import _get_device_index
from torch.nn.parallel import _functions, comm

from torchport.inside.vcuda import moves, tags
from torchport.inside.vcuda.faults import operand, where
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.patches import Patches
from torchport.inside.vcuda.tags import HOST

# ncclRedOp_t: sum, product, maximum, minimum, average.
_REDUCE: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.mul,
    torch.maximum,
    torch.minimum,
    operator.add,
)
_AVERAGE = 4


def install(patches: Patches, machine: Machine) -> None:
    """Copies between the cards of one process, and the check that DataParallel makes."""
    patches.set(torch._C, "_scatter", functools.partial(_scatter, machine))
    patches.set(torch._C, "_scatter_out", _scatter_out)
    patches.set(torch._C, "_gather", functools.partial(_gather, machine))
    patches.set(torch._C, "_gather_out", _gather_out)
    patches.set(torch._C, "_broadcast", functools.partial(_broadcast, machine))
    patches.set(torch._C, "_broadcast_out", _broadcast_out)
    patches.set(torch._C, "_broadcast_coalesced", functools.partial(_broadcast_coalesced, machine))
    patches.set(_functions, "_streams", None)  # one stream a card, made at first use: for our number of cards
    patches.set(_functions.Scatter, "forward", staticmethod(_scatter_forward))
    for name, call in _NCCL.items():
        patches.set(torch._C, f"_nccl_{name}", call)
    patches.set(
        import_module("torch.nn.parallel.parallel_apply"),
        "threading",
        SimpleNamespace(Thread=_Turn, Lock=Lock),
    )
    cls = torch.nn.DataParallel
    patches.set(cls, "forward", _checked_forward(machine, cls.forward))


class _Turn(Thread):
    """A replica's thread, whose start waits for its end: random numbers are drawn in a fixed order.

    One that does not end may be waiting for another replica (batch norm over all of them, say): from then on all
    run at once, as on cards.
    """

    patience_s: ClassVar[float] = 10.0
    all_at_once: ClassVar[bool] = False

    def start(self) -> None:
        super().start()
        if not _Turn.all_at_once:
            self.join(self.patience_s)
            _Turn.all_at_once = self.is_alive()


def place_module(machine: Machine, module: Any, device: int) -> None:
    """Heals a module that was left elsewhere, for good: its parameters and buffers are on ``device`` from now on."""
    for tensor in chain(module.parameters(), module.buffers()):
        tags.put(machine, tensor, device)


def _checked_forward(machine: Machine, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            target = self.device_ids[0]
            for tensor in chain(self.module.parameters(), self.module.buffers()):
                if tags.device_of(tensor) != target:
                    _refuse(machine, tensor, self.src_device_obj)
                    place_module(machine, self.module, target)
                    break
        return original(self, *inputs, **kwargs)

    return forward


def _refuse(machine: Machine, tensor: Any, device: torch.device) -> None:
    text = (
        f"module must have its parameters and buffers on device {device} (device_ids[0]) "
        f"but found one of them on device: {where(tensor)}"
    )
    here = operand("parameter", tensor)
    machine.faults.refuse(
        "R112",
        text,
        RuntimeError,
        [here],
        here,
        remedy="module-to",
        op="DataParallel",
        fields={"extra": {"device": str(device)}},
    )


def _scatter_forward(ctx: Any, target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> Any:
    """torch's own without its copy streams, which a CPU wheel cannot name by number."""
    ctx.dim = dim
    ctx.input_device = tags.device_of(input)
    real = torch.view_as_real(input) if input.is_complex() else input
    chunks = comm.scatter(real, [_get_device_index(gpu, True) for gpu in target_gpus], chunk_sizes, dim)
    return tuple(torch.view_as_complex(chunk) for chunk in chunks) if input.is_complex() else chunks


def _scatter(
    machine: Machine,
    tensor: Any,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None,
    dim: int,
    streams: Any = None,
) -> list[Any]:
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    else:
        if len(chunk_sizes) != len(devices):
            raise RuntimeError(
                "Expected devices and chunk_sizes to be of same length, but got "
                f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
            )
        chunks = tensor.split(list(chunk_sizes), dim)
    return [_to(machine, chunk, device) for chunk, device in zip(chunks, devices, strict=False)]


def _to(machine: Machine, tensor: Any, device: int, copy: bool = False) -> Any:
    if tags.device_of(tensor) == device:
        return tensor.clone() if copy else tensor
    machine.local.quiet += 1  # that the memory could be pinned is no advice for a copy that torch makes
    try:
        return moves.moved(machine, tensor, device, non_blocking=True)
    finally:
        machine.local.quiet -= 1


def _scatter_out(tensor: Any, out: Sequence[Any], dim: int, streams: Any = None) -> list[Any]:
    if not out:
        raise RuntimeError("Expected at least one output tensor to scatter to")
    _all_on_cards(out, "output")
    for target, chunk in zip(out, tensor.split([t.size(dim) for t in out], dim), strict=True):
        target.copy_(chunk, True)
    return list(out)


def _gather(machine: Machine, tensors: Sequence[Any], dim: int, destination: int | None) -> Any:
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    _all_on_cards(tensors, "input")
    first = tensors[0]
    shape = list(first.shape)
    for index, tensor in enumerate(tensors):
        expected = [*shape[:dim], tensor.size(dim), *shape[dim + 1 :]] if dim >= 0 else list(tensor.shape)
        if list(tensor.shape) != expected:
            raise RuntimeError(
                f"Input tensor at index {index} has invalid shape {list(tensor.shape)}, but expected {expected}"
            )
    shape[dim] = sum(tensor.size(dim) for tensor in tensors)
    index = machine.current if destination is None else destination
    channels_last = all(t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) for t in tensors)
    result = torch.empty(
        shape,
        dtype=first.dtype,
        device="cpu" if index == HOST else f"cuda:{index}",
        memory_format=torch.channels_last if channels_last and not first.is_contiguous() else torch.contiguous_format,
    )
    return _gather_out(tensors, result, dim)


def _gather_out(tensors: Sequence[Any], out: Any, dim: int) -> Any:
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    _all_on_cards(tensors, "input")
    ends = list(accumulate(tensor.size(dim) for tensor in tensors))
    for tensor, end in zip(tensors, ends, strict=True):
        out.narrow(dim, end - tensor.size(dim), tensor.size(dim)).copy_(tensor, True)
    return out


def _broadcast(machine: Machine, tensor: Any, devices: Sequence[int]) -> list[Any]:
    if not devices:
        raise RuntimeError("Expected at least one device to broadcast to")
    return [_to(machine, tensor, device, copy=place > 0) for place, device in enumerate(devices)]


def _broadcast_out(tensor: Any, out: Sequence[Any]) -> list[Any]:
    if not out:
        raise RuntimeError("Expected at least one output tensor to broadcast to")
    _all_on_cards(out, "output")
    for target in out:
        if target is not tensor:
            target.copy_(tensor, True)
    return list(out)


def _broadcast_coalesced(
    machine: Machine, tensors: Sequence[Any], devices: Sequence[int], buffer_size: int
) -> list[list[Any]]:
    if any(tags.device_of(tensor) != devices[0] for tensor in tensors):
        raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
    copies = [[_to(machine, t, device, copy=True).detach() for t in tensors] for device in devices[1:]]
    return [list(tensors), *copies]


def _all_on_cards(tensors: Iterable[Any], kind: str) -> None:
    for index, tensor in enumerate(tensors):
        if tags.device_of(tensor) < 0:
            raise RuntimeError(
                f"Expected all {kind} tensors to be CUDA tensors, but"
                f"{' output' if kind == 'output' else ''} tensor at index {index} is not"
            )


# torch.cuda.nccl: one process, a tensor a card


def _reduced(inputs: Sequence[Any], op: int, like: Any) -> Any:
    total = functools.reduce(_REDUCE[op], (tensor.to(like.device) for tensor in inputs))
    return total / len(inputs) if op == _AVERAGE else total


@torch.no_grad()
def _nccl_all_reduce(
    inputs: Sequence[Any], outputs: Sequence[Any], op: int = 0, streams: Any = None, comms: Any = None
) -> None:
    _distinct(inputs)
    total = _reduced(inputs, op, inputs[0])
    for output in outputs:
        output.copy_(total)


@torch.no_grad()
def _nccl_reduce(
    inputs: Sequence[Any], output: Any, root: int = 0, op: int = 0, streams: Any = None, comms: Any = None
) -> None:
    _distinct(inputs)
    output.copy_(_reduced(inputs, op, inputs[root]))


@torch.no_grad()
def _nccl_broadcast(inputs: Sequence[Any], root: int = 0, streams: Any = None, comms: Any = None) -> None:
    _distinct(inputs)
    for index, tensor in enumerate(inputs):
        if index != root:
            tensor.copy_(inputs[root])


@torch.no_grad()
def _nccl_all_gather(inputs: Sequence[Any], outputs: Sequence[Any], streams: Any = None, comms: Any = None) -> None:
    _distinct(inputs)
    for output in outputs:
        for part, tensor in zip(output.view(-1).chunk(len(inputs)), inputs, strict=True):
            part.copy_(tensor.reshape(-1))


@torch.no_grad()
def _nccl_reduce_scatter(
    inputs: Sequence[Any], outputs: Sequence[Any], op: int = 0, streams: Any = None, comms: Any = None
) -> None:
    _distinct(inputs)
    total = _reduced([tensor.reshape(-1) for tensor in inputs], op, inputs[0])
    for output, part in zip(outputs, total.chunk(len(outputs)), strict=True):
        output.view(-1).copy_(part)


def _distinct(tensors: Sequence[Any]) -> None:
    if any(not tensor.is_contiguous() for tensor in tensors):
        raise RuntimeError("input is not contiguous")
    if len({tags.device_of(tensor) for tensor in tensors}) < len(tensors):
        raise RuntimeError("inputs must be on unique devices")


_NCCL = {
    "all_reduce": _nccl_all_reduce,
    "reduce": _nccl_reduce,
    "broadcast": _nccl_broadcast,
    "all_gather": _nccl_all_gather,
    "reduce_scatter": _nccl_reduce_scatter,
}

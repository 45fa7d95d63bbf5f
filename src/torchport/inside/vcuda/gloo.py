"""What NCCL can do and gloo cannot, made of what gloo has: averages, lists, uneven sizes, strides, small types.

Everything stays asynchronous: what has to follow a transfer is chained to its future.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from threading import Thread
from typing import Any

import torch

from torchport.inside.vcuda.operators import Operator

Given = dict[str, Any]  # the arguments of an operator of c10d by their names
Actions = list[Callable[[], Any]]  # what is to be done once the data is there

_empty = torch._C._VariableFunctions.empty  # torch.empty is the virtual device's own
_Future: Any = torch._C.Future
_then = _Future.then
_wait: Any = torch._C._distributed_c10d.Work.wait if torch.distributed.is_available() else None
# Types whose bytes gloo does not carry, though NCCL does.
_AS_BYTES = frozenset(getattr(torch, name) for name in dir(torch) if name.startswith("float8_"))
_REDUCES = ("allreduce_", "reduce_", "_reduce_")


def run(operator: Operator, given: Given, pg: Any, scale: float | None) -> tuple[Any, Any]:
    """Runs an operator of c10d on host memory; ``scale`` is what its sums are multiplied by.

    Returns the operator's result and its Work as Python has it.
    """
    name = operator.packet.removeprefix("c10d::")
    after: Actions = []
    sent = {key: _packed(value, after, written=_written(name, key)) for key, value in given.items()}
    if not name.startswith(_REDUCES):
        sent = {key: _carried(value) for key, value in sent.items()}
    work = (_OTHERWISE.get(name) or _as_it_is)(operator, sent, pg, after)
    schema = operator.func._schema
    outputs = given[schema.arguments[0].name]  # so it is in all of them
    if scale is not None and (name != "reduce_" or pg.rank() == given["root_rank"]):
        after.append(lambda: _scale(outputs, scale))
    script, handle = _chained(work, after)
    return (script if len(schema.returns) < 2 else (outputs, script)), handle


def completed() -> tuple[Any, Any]:
    """A Work that is done: as operators return it, and as Python has it."""
    future: Any = torch.futures.Future()
    future.set_result([])
    handle = torch._C._distributed_c10d._create_work_from_future(future)
    return handle.boxed(), handle


def barrier(process_group: Any) -> Any:
    """The Work of a barrier of a group as operators have it."""
    return _issue("barrier", _empty([1], dtype=torch.uint8), process_group, [])


def exchange(pg: Any, value: int) -> list[int]:
    """The value that each rank of a group brings; waits for all of them."""
    mine, theirs = _empty([1], dtype=torch.int64), _empty([pg.size()], dtype=torch.int64)
    mine.fill_(value)
    pg._allgather_base(theirs, mine).wait()
    return torch._C.TensorBase.tolist(theirs)


def together(handles: list[Any]) -> Any:
    """One Work for several."""
    try:
        future = torch._C._collect_all([handle.get_future() for handle in handles])
    except RuntimeError:  # of send and recv, which have no future
        future = _waited_for(handles, [])
    return torch._C._distributed_c10d._create_work_from_future(future)


def _written(name: str, key: str) -> bool:
    return name != "send" and not key.startswith("input")


def _packed(value: Any, after: Actions, *, written: bool) -> Any:
    """Strided tensors laid out without gaps, and brought back afterwards where they were written to."""
    if isinstance(value, (list, tuple)):
        return [_packed(item, after, written=written) for item in value]
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or dense(value):
        return value
    packed = value.detach().contiguous()
    if written:
        after.append(lambda: value.detach().copy_(packed))
    return packed


def dense(tensor: Any) -> bool:
    """Whether a tensor is contiguous in the memory format that it seems to have, which is all that NCCL asks."""
    return bool(
        tensor.is_contiguous()
        or (tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last))
        or (tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d))
    )


def _carried(value: Any) -> Any:
    """The same memory as a type that gloo carries."""
    if isinstance(value, list):
        return [_carried(item) for item in value]
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        if value.dtype in _AS_BYTES:
            return value.detach().view(torch.uint8)
        if value.is_complex():
            return torch.view_as_real(value.detach().resolve_conj())
    return value


def _scale(value: Any, scale: float) -> None:
    for item in value if isinstance(value, (list, tuple)) else (value,):
        tensor = item.detach()
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.mul_(scale)
        else:
            tensor.div_(round(1 / scale), rounding_mode="trunc")


def _chained(script: Any, after: Actions) -> tuple[Any, Any]:
    """The Work of an operator, which is done when what follows is done too."""
    c10d: Any = torch._C._distributed_c10d
    handle = c10d.Work.unbox(script)
    if not after:
        return script, handle

    @torch.no_grad()
    def finish(done: Any) -> Any:
        result = done.value()
        for action in after:
            action()
        return result

    try:
        future = _then(handle.get_future(), finish)
    except RuntimeError:  # of send and recv, which have no future
        future = _waited_for([handle], after)
    handle = c10d._create_work_from_future(future)
    return handle.boxed(), handle


def _waited_for(handles: list[Any], after: Actions) -> Any:
    future: Any = torch.futures.Future()

    @torch.no_grad()
    def wait() -> None:
        try:
            for handle in handles:
                _wait(handle)
            for action in after:
                action()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result([])

    Thread(target=wait, daemon=True).start()
    return future


# The operators that gloo lacks, or has for some of their arguments only. Each returns the Work of what it called.


def _issue(name: str, *args: Any) -> Any:
    """Another operator of c10d, asynchronous and with the group's own timeout."""
    func = getattr(torch.ops.c10d, name).default
    rest = func._schema.arguments[len(args) :]
    return func(*args, **{each.name: -1 if each.name == "timeout" else True for each in rest})


def _as_it_is(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    out = operator.func(**sent)
    return out[1] if isinstance(out, (tuple, list)) else out


def _allgather(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    """NCCL takes tensors of different sizes: a broadcast from each rank."""
    (outputs,), (mine,) = sent["output_tensors"], sent["input_tensors"]
    if len({tensor.numel() for tensor in outputs}) == 1:
        return _as_it_is(operator, sent, pg, after)
    with torch.no_grad():
        outputs[pg.rank()].copy_(mine.view_as(outputs[pg.rank()]))
    work_of = torch._C._distributed_c10d.Work.unbox
    works = []
    for rank, tensor in enumerate(outputs):
        works.append(work_of(_issue("broadcast_", [tensor], sent["process_group"], rank, 0)[1]))
    return together(works).boxed()


def _reduce_scatter(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    """The sum of everything on every rank, of which each keeps its part. gloo's own takes even parts only and, up to
    torch 2.7, none."""
    (output,), (inputs,) = sent["output_tensors"], sent["input_tensors"]
    return _sum_and_keep(inputs, output, sent, pg, after)


def _allgather_base(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    """NCCL looks at the numbers of elements only, gloo wants a row a rank."""
    flat = {
        **sent,
        "output_tensor": _flat(sent["output_tensor"]),
        "input_tensor": _flat(sent["input_tensor"]),
    }
    return _as_it_is(operator, flat, pg, after)


def _flat(tensor: Any) -> Any:
    return tensor.detach().as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _reduce_scatter_base(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    parts = _flat(sent["input_tensor"]).chunk(pg.size())
    return _sum_and_keep(list(parts), sent["output_tensor"], sent, pg, after)


def _sum_and_keep(parts: list[Any], output: Any, sent: Given, pg: Any, after: Actions) -> Any:
    flat = torch.cat([part.detach().reshape(-1) for part in parts])
    mine = flat.split([part.numel() for part in parts])[pg.rank()]
    after.insert(0, lambda: output.detach().copy_(mine.view_as(output)))
    return _issue("allreduce_", [flat], sent["process_group"], sent["reduce_op"], None)[1]


def _alltoall(operator: Operator, sent: Given, pg: Any, after: Actions) -> Any:
    """A list to each rank: one flat buffer with the sizes beside it."""
    outputs, inputs = sent["output_tensors"], sent["input_tensors"]
    sizes = [tensor.numel() for tensor in outputs]
    given = torch.cat([tensor.detach().reshape(-1) for tensor in inputs])
    taken = _empty([sum(sizes)], dtype=given.dtype)

    def unpack() -> None:
        for tensor, end in zip(outputs, accumulate(sizes), strict=True):
            tensor.detach().copy_(taken[end - tensor.numel() : end].view_as(tensor))

    after.insert(0, unpack)
    return _issue("alltoall_base_", taken, given, sent["process_group"], sizes, [t.numel() for t in inputs])


_OTHERWISE: dict[str, Callable[[Operator, Given, Any, Actions], Any]] = {
    "allgather_": _allgather,
    "_allgather_base_": _allgather_base,
    "reduce_scatter_": _reduce_scatter,
    "_reduce_scatter_base_": _reduce_scatter_base,
    "alltoall_": _alltoall,
}

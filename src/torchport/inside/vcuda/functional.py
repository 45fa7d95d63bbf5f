"""Functional collectives: the operators that DTensor and traced code use. In a rehearsal they have ended when they
return, so that waiting for their tensors is nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchport.inside.vcuda import tags
from torchport.inside.vcuda.collectives import Collectives
from torchport.inside.vcuda.operators import Operator

_PREFIX = "_c10d_functional::"
_KNOWN = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast")


def router(collectives: Collectives) -> Callable[[Any, Operator, Any, Any], Any]:
    """What the floor calls for operators of c10d, of both kinds."""

    def route(floor: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        if not operator.packet.startswith(_PREFIX):
            return collectives(floor, operator, args, kwargs)
        name = operator.packet.removeprefix(_PREFIX)
        if not name.startswith(_KNOWN):
            return _unchanged(floor, operator, args, kwargs)
        return _run(collectives, floor, operator, name, args, kwargs)

    return route


def _unchanged(floor: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
    first = next((arg for arg in args if isinstance(arg, torch.Tensor)), None)
    return floor.run(operator, args, kwargs, tags.HOST if first is None else tags.device_of(first))


def _run(collectives: Collectives, floor: Any, operator: Operator, name: str, args: Any, kwargs: Any) -> Any:
    from torch.distributed import distributed_c10d as c10d

    names = [argument.name for argument in operator.func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    pg: Any = given["group_name"]
    pg = c10d._resolve_process_group(pg) if isinstance(pg, str) else torch._C._distributed_c10d.ProcessGroup.unbox(pg)
    group = collectives.group(pg)
    tensors = {key: value for key, value in given.items() if key in ("input", "inputs", "out")}
    call = collectives.call(pg, group, name.rstrip("_"), list(tensors.values()))
    collectives.tell(call, "enter")
    collectives.admit(pg, group, call.op, tensors)
    average = given.get("reduce_op") == "avg"
    if average:
        given["reduce_op"] = "sum"
    first = given.get("input", given.get("inputs"))
    device = tags.device_of(first[0] if isinstance(first, (list, tuple)) else first)
    out = floor.run(operator, (), given, device)
    for tensor in out if isinstance(out, (list, tuple)) else (out,):
        torch.ops._c10d_functional.wait_tensor.default(tensor)
        if average:
            with torch.no_grad():
                tensor.div_(pg.size())
    collectives.tell(call, "leave")
    return out

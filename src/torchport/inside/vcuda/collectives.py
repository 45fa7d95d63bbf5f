"""Collectives on virtual cards: each is recorded, held to NCCL's rules, and run by gloo on host memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from torchport.inside.places import Place
from torchport.inside.vcuda import cuda, gloo, tags
from torchport.inside.vcuda.builds import installed_build
from torchport.inside.vcuda.faults import operand
from torchport.inside.vcuda.machine import Machine
from torchport.inside.vcuda.meta import is_meta
from torchport.inside.vcuda.operators import Operator
from torchport.inside.vcuda.tags import HOST, UNBORN

# Operators of c10d by the names of torch.distributed.
NAMES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "allgather_": "all_gather",
    "allgather_coalesced_": "all_gather_coalesced",
    "_allgather_base_": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "gather_": "gather",
    "gather_into_tensor_": "gather_into_tensor",
    "scatter_": "scatter",
    "barrier": "barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
}
POINT_TO_POINT = ("send", "recv")
_DUPLICATE = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp, invalid usage "
    "(run with NCCL_DEBUG=WARN for details), NCCL version {}\n"
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
    "Last error:\nDuplicate GPU detected : rank {} and rank {} both on CUDA device {:x}"
)


@dataclass(slots=True, eq=False)
class Call:
    """One call of a collective on this rank. ``sequence`` counts the calls of its group, from 1."""

    group: str
    ranks: tuple[int, ...] | None  # of the whole job, None for the group of all
    sequence: int
    op: str
    shapes: list[str]
    dtype: str
    bytes: int
    place: Place | None


class Group:
    """A process group as this rank knows it."""

    __slots__ = ("backend", "coalescing", "device", "host", "met", "nccl", "pending", "points", "sequence")

    def __init__(self, nccl: bool, backend: Any = None) -> None:
        self.nccl = nccl
        self.backend = backend  # kept, so that torch gets the same object of Python again
        self.host = False  # host tensors have a backend of their own: "cpu:gloo,cuda:nccl"
        self.device = UNBORN  # the card that it was last used with
        self.met = False  # the ranks have told each other which cards they use
        self.sequence = self.points = self.pending = 0
        self.coalescing: list[Any] | None = None


class Collectives:
    """What the floor calls for operators of c10d."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        # A group must not end on one of its own threads, which the garbage collector may run on: it is kept until
        # the next one is made.
        self.groups: dict[Any, Group] = {}
        self.waiting: dict[Any, Call] = {}  # by Work: sends and receives nobody has waited for yet

    def group(self, pg: Any) -> Group:
        """What is known of a process group; one that was not made as NCCL's is gloo's."""
        return self.groups.get(pg) or self.add(pg, Group(nccl=False))

    def add(self, pg: Any, group: Group) -> Group:
        """Notes a new group, and forgets those that were destroyed."""
        from torch.distributed import distributed_c10d as c10d

        for old, known in list(self.groups.items()):
            if old not in c10d._world.pg_map and not known.pending:
                del self.groups[old]
        self.groups[pg] = group
        return group

    def __call__(self, floor: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        given = _given(operator, args, kwargs)
        op = NAMES.get(operator.packet.removeprefix("c10d::"))
        if op is None or "process_group" not in given:
            return operator.func(*args, **kwargs)
        pg = torch._C._distributed_c10d.ProcessGroup.unbox(given["process_group"])
        group = self.group(pg)
        if group.nccl and operator.packet == "c10d::recv_any_source_":
            raise RuntimeError("ProcessGroupNCCL does not support recvAnysource")
        call = self.call(pg, group, op, [value for key, value in given.items() if key != "sparse_indices"])
        if op not in POINT_TO_POINT:
            self.tell(call, "enter")
        self.admit(pg, group, op, given)
        scale, self.machine.local.scale = self.machine.local.scale, None
        if any(is_meta(tensor) for tensor in _tensors(list(given.values()))):
            result, handle = self.pretended(operator, given)
        else:
            result, handle = gloo.run(operator, given, pg, scale)
        self.follow(group, handle, call)
        if group.coalescing is not None:
            group.coalescing.append(handle)
        return result

    def call(self, pg: Any, group: Group, op: str, values: Any) -> Call:
        """The next call of a group."""
        point = op in POINT_TO_POINT
        if point:
            group.points += 1
        else:
            group.sequence += 1
        tensors = [] if op == "barrier" else list(_tensors(values))
        name = str(pg.group_name)
        shapes = [str(list(tensor.shape)) for tensor in tensors[:16]]
        return Call(
            group=f"{name}/points" if point else name,
            ranks=_ranks(pg),
            sequence=group.points if point else group.sequence,
            op=op,
            shapes=shapes if len(tensors) <= 16 else [*shapes, f"… {len(tensors)} tensors"],
            dtype=str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
            bytes=max((_bytes(value) for value in values), default=0),
            place=self.machine.places.here(),
        )

    def tell(self, call: Call, state: str) -> None:
        """Hands an event on to the recorder, if one listens."""
        listener = self.machine.on_collective
        if listener is not None:
            listener(call, state)

    def follow(self, group: Group, handle: Any, call: Call) -> None:
        """Tells when a call is done. Of a send or receive, only the time in which it is waited for counts."""
        try:
            future = handle.get_future()
        except RuntimeError:  # sends and receives have none
            for work in [work for work in self.waiting if work.is_completed()]:
                del self.waiting[work]
            self.waiting[handle] = call
            return
        group.pending += 1
        future.add_done_callback(lambda done: self.done(done, group, call))

    def done(self, future: Any, group: Group, call: Call) -> None:
        """Runs on a thread of gloo."""
        try:
            future.value()
            self.tell(call, "leave")
        except Exception:
            pass  # it never ended; whoever waits for it gets the error
        finally:
            group.pending -= 1

    def waits(self, wait: Any, handle: Any, *args: Any, **kwargs: Any) -> Any:
        """``Work.wait``."""
        call = self.waiting.pop(handle, None) if self.waiting else None
        if call is None:
            return wait(handle, *args, **kwargs)
        if call.op in POINT_TO_POINT:
            call.place = self.machine.places.here()
            self.tell(call, "enter")
        result = wait(handle, *args, **kwargs)
        self.tell(call, "leave")
        return result

    def pretended(self, operator: Operator, given: dict[str, Any]) -> tuple[Any, Any]:
        """Tensors without numbers: nothing is sent, but the ranks wait for each other."""
        schema = operator.func._schema
        if operator.packet in ("c10d::send", "c10d::recv_", "c10d::recv_any_source_"):
            script, handle = gloo.completed()
        else:
            script = gloo.barrier(given["process_group"])
            handle = torch._C._distributed_c10d.Work.unbox(script)
        return (script if len(schema.returns) < 2 else (given[schema.arguments[0].name], script)), handle

    # NCCL's rules

    def admit(self, pg: Any, group: Group, op: str, given: dict[str, Any]) -> None:
        """Gives unborn tensors their card, and refuses what NCCL refuses."""
        local = self.machine.local
        if op == "barrier":
            device, local.barrier = local.barrier, UNBORN
        else:
            operands = [operand(key, tensor) for key, value in given.items() for tensor in _tensors(value)]
            device = next((one.device for one in operands if one.device >= 0), local.replica)
            if device < 0:
                device = group.device if group.device >= 0 else self.machine.current if group.nccl else HOST
            for one in operands:
                if one.device == UNBORN:
                    tags.put(self.machine, one.tensor, device)
                    one.device = device
            if group.nccl and not local.objects:
                self.check(group, op, operands)
            if not any(one.device >= 0 for one in operands):
                device = UNBORN
        if device >= 0:
            group.device = device
        if group.nccl and not group.met and op not in POINT_TO_POINT and pg.size() > 1:
            self.meet(pg, group, device)

    def check(self, group: Group, op: str, operands: list[Any]) -> None:
        """CUDA tensors only, and without gaps."""
        hosts = [one for one in operands if one.device == HOST]
        faults = self.machine.faults
        if hosts and not (group.host and len(hosts) == len(operands)):
            error: type[Exception] = RuntimeError
            text = "No backend type associated with device type cpu"
            if len(hosts) < len(operands):
                text, error = "Tensors must be CUDA and dense", ValueError
            faults.refuse("R403", text, error, operands, hosts[0], op=op)
        gaps = [one for one in operands if one.device >= 0 and not gloo.dense(one.tensor)]
        if gaps and op not in POINT_TO_POINT:
            faults.refuse("R406", "Tensors must be contiguous", ValueError, gaps, gaps[0], remedy="contiguous", op=op)

    def meet(self, pg: Any, group: Group, device: int) -> None:
        """The first time a group is used, its ranks look whether two of them use one card."""
        mine = cuda.visible(self.machine)[device] if device >= 0 else -1
        cards = gloo.exchange(pg, mine)
        group.met = min(cards) >= 0
        shared = [rank for rank, card in enumerate(cards) if card >= 0 and cards.count(card) > 1]
        if not shared:
            return
        rank = pg.rank() if pg.rank() in shared else shared[0]
        other = next(each for each in shared if each != rank and cards[each] == cards[rank])
        version = ".".join(map(str, installed_build().nccl))
        text = _DUPLICATE.format(version, rank, other, (cards[rank] + 1) << 12)
        ranks = _ranks(pg) or range(pg.size())
        rows = [{"rank": ranks[each], "op": f"cuda:{cards[each]}"} for each in shared]
        error = torch.distributed.DistBackendError
        self.machine.faults.refuse("R404", text, error, fields={"ranks": rows}, op="NCCL")


def _given(operator: Operator, args: Any, kwargs: Any) -> dict[str, Any]:
    names = [argument.name for argument in operator.func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _bytes(value: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(value))


def _ranks(pg: Any) -> tuple[int, ...] | None:
    """The members by their ranks in the whole job; None where all are."""
    from torch.distributed import distributed_c10d as c10d

    members = c10d._world.pg_group_ranks.get(pg)
    if members is None or len(members) == c10d.get_world_size():
        return None
    return tuple(members)

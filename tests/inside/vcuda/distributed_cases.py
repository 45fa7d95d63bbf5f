"""What two ranks on two virtual cards do together: each case once on both, its answer as JSON.

``python distributed_cases.py RANK FOLDER`` runs all cases in one process, each in a fresh session and group.
"""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torchport.inside.vcuda import virtual_cuda

WORLD = 2
CASES = {}


def case(*expected, strict=False, backing="cpu", card=None, **options):
    """Registers a case: what both ranks answer, or what rank 0 and rank 1 answer."""

    def register(function):
        name = function.__name__.replace("_", " ").strip()
        CASES[name] = (function, expected * WORLD if len(expected) == 1 else expected, strict, backing, card, options)
        return function

    return register


def filled(value, size=4, dtype=torch.float32):
    return torch.full((size,), value, dtype=dtype, device="cuda")


def text_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def network(norm=True):
    torch.manual_seed(0)
    middle = nn.BatchNorm2d(4) if norm else nn.Identity()
    return nn.Sequential(nn.Conv2d(3, 4, 3), middle, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))


def batch(rank):
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(rank))


class Forgetful(nn.Module):
    """Has a layer that its output does not depend on."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.used(x)


# Collectives


def reduced(rank, op, dtype=torch.float32):
    value = filled(rank + 1, dtype=dtype)
    dist.all_reduce(value, op=op)
    return value.tolist()[0]


@case([3.0, 2.0, 2.0, 1.5, 0.75, 1, 1.5])
def all_reduce(rank, session):
    average = dist.ReduceOp.AVG
    return [
        reduced(rank, dist.ReduceOp.SUM),
        reduced(rank, dist.ReduceOp.MAX),
        reduced(rank, dist.ReduceOp.PRODUCT),
        reduced(rank, average),
        reduced(rank, dist._make_nccl_premul_sum(0.25)),
        reduced(rank, average, torch.int64),
        reduced(rank, average, torch.float16),
    ]


@case([1.5, 3.0])
def all_reduce_that_is_not_waited_for_at_once(rank, session):
    first, second = filled(rank + 1.0), filled(rank + 1.0)
    works = [dist.all_reduce(first, op=dist.ReduceOp.AVG, async_op=True), dist.all_reduce(second, async_op=True)]
    for work in works:
        work.wait()
    return [first.tolist()[0], second.tolist()[0]]


@case([1.5], [2.0])
def reduce(rank, session):
    value = filled(rank + 1.0)
    dist.reduce(value, 0, op=dist.ReduceOp.AVG)
    return [value.tolist()[0]] if rank == 0 else [2.0]


@case(["cuda:0", 2.0], ["cuda:1", 2.0])
def broadcast(rank, session):
    value = filled(rank + 1.0)
    dist.broadcast(value, 1)
    return [str(value.device), value.tolist()[0]]


@case([[1.0, 2.0], [[1.0, 1.0], [2.0, 2.0, 2.0]], [1.0, 1.0, 2.0, 2.0]])
def all_gather(rank, session):
    even = [filled(0.0) for _ in range(WORLD)]
    dist.all_gather(even, filled(rank + 1.0))
    uneven = [filled(0.0, 2), filled(0.0, 3)]
    dist.all_gather(uneven, filled(rank + 1.0, 2 + rank))
    flat = torch.empty(1, 4, device="cuda")  # NCCL counts elements only
    dist.all_gather_into_tensor(flat, filled(rank + 1.0, 2))
    return [[part.tolist()[0] for part in even], [part.tolist() for part in uneven], flat.view(-1).tolist()]


@case([[3.0, 1.5], [3.0, 6.0], [1.5, 3.0]], [[30.0, 15.0], [9.0, 12.0], [4.5, 6.0]])
def reduce_scatter(rank, session):
    def listed(op):
        out = filled(0.0, 2)
        dist.reduce_scatter(out, [filled(rank + 1.0, 2), filled(10.0 * (rank + 1), 2)], op=op)
        return out.tolist()[0]

    def flat(op):
        out = filled(0.0, 2)
        dist.reduce_scatter_tensor(out, torch.arange(1.0, 5.0, device="cuda") * (rank + 1), op=op)
        return out.tolist()

    operations = (dist.ReduceOp.SUM, dist.ReduceOp.AVG)
    return [[listed(op) for op in operations], *[flat(op) for op in operations]]


@case([[0.0, 10.0], [0.0, 10.0]], [[1.0, 11.0], [0.0, 0.0, 10.0]])
def all_to_all(rank, session):
    out = [filled(0.0, 1) for _ in range(WORLD)]
    dist.all_to_all(out, [filled(10.0 * rank, 1), filled(10.0 * rank + 1, 1)])
    sizes = [[1, 2], [1, 1]]  # what each rank gives to each
    taken = [sizes[other][rank] for other in range(WORLD)]
    single = filled(-1.0, sum(taken))
    dist.all_to_all_single(single, filled(10.0 * rank, sum(sizes[rank])), taken, sizes[rank])
    return [[part.item() for part in out], single.tolist()]


@case([[1.0, 2.0], 5.0], [None, 6.0])
def gather_and_scatter(rank, session):
    gathered = [filled(0.0) for _ in range(WORLD)] if rank == 0 else None
    dist.gather(filled(rank + 1.0), gathered)
    mine = filled(0.0)
    dist.scatter(mine, [filled(5.0), filled(6.0)] if rank == 0 else None)
    return [gathered and [part.tolist()[0] for part in gathered], mine.tolist()[0]]


@case([1.0, 1.0], [0.0, 0.0])
def point_to_point(rank, session):
    value, strided = filled(float(rank)), torch.zeros(3, 2, device="cuda").t()
    mine = torch.full((2, 3), float(rank), device="cuda")
    for to, origin in ((value, filled(float(rank))), (strided, mine)):
        pair = [dist.P2POp(dist.isend, origin, 1 - rank), dist.P2POp(dist.irecv, to, 1 - rank)]
        for work in dist.batch_isend_irecv(pair):
            work.wait()
    return [value.tolist()[0], strided[1, 2].item()]


@case([{"rank": 1}, [0, "x"], 1, "cuda:0"], [{"rank": 1}, [0, "x"], 2, "cuda:1"])
def objects(rank, session):
    gathered, listed, mine, tensors = [None] * WORLD, [rank, "x"], [None], [None] * WORLD
    dist.all_gather_object(gathered, {"rank": rank})
    dist.broadcast_object_list(listed, 0)
    dist.scatter_object_list(mine, [1, 2] if rank == 0 else None, 0)
    dist.all_gather_object(tensors, filled(1.0))
    return [gathered[1], listed, mine[0], str(tensors[rank].device)]


@case([[3.0, 1.5], [3.0, 3.0], [2.0, 2.0]])
def several_calls_in_one(rank, session):
    a, b = filled(rank + 1.0), filled(rank + 1.0)
    with dist._coalescing_manager(device=torch.device("cuda", rank), async_ops=True) as manager:
        dist.all_reduce(a)
    manager.wait()
    with dist._coalescing_manager():
        dist.all_reduce(b, op=dist.ReduceOp.AVG)
    c, d = filled(rank + 1.0), filled(rank + 1.0)
    with dist._coalescing_manager():
        dist.all_reduce(c)
        dist.all_reduce(d)
    parts = filled(0.0, 2)
    with dist._coalescing_manager():
        dist.reduce_scatter_tensor(parts, filled(1.0))
    return [[a.tolist()[0], b.tolist()[0]], [c.tolist()[0], d.tolist()[0]], parts.tolist()]


@case([2.0, [1.0, 2.0], [2.0, 3.0]])
def types_that_gloo_lacks(rank, session):
    small = filled(rank + 1.0).to(torch.float8_e4m3fn)
    dist.broadcast(small, 1)
    complex_, summed = (torch.full((2,), 1 + 1j * (rank + 1)).cuda() for _ in range(2))
    dist.broadcast(complex_, 1)
    dist.all_reduce(summed)
    pairs = (torch.view_as_real(value)[0].tolist() for value in (complex_, summed))
    return [small.float().tolist()[0], *pairs]


@case([3.0, 1.5, [1.0, 1.0, 2.0, 2.0], "cuda:0"], [3.0, 1.5, [1.0, 1.0, 2.0, 2.0], "cuda:1"])
def functional(rank, session):
    import torch.distributed._functional_collectives as functional

    world = dist.group.WORLD
    gathered = functional.all_gather_tensor(filled(rank + 1.0, 2), 0, world)
    return [
        functional.all_reduce(filled(rank + 1.0), "sum", world).tolist()[0],
        functional.all_reduce(filled(rank + 1.0), "avg", world).tolist()[0],
        gathered.tolist(),
        str(gathered.device),
    ]


@case([[3.0, 3.0], [2.0, 2.0], "cuda:0"], [[3.0, 3.0], [4.0, 4.0], "cuda:1"])
def differentiable(rank, session):
    import torch.distributed.nn

    leaf = torch.ones(2, device="cuda", requires_grad=True)
    out = torch.distributed.nn.all_reduce(leaf * (rank + 1))
    out.sum().backward()
    return [out.tolist(), leaf.grad.tolist(), str(leaf.grad.device)]


# Groups


@case(["nccl", True, ["cuda"], [1.0, 2.0], ["nccl", "gloo"]])
def groups(rank, session):
    alone = [dist.new_group([each]) for each in range(WORLD)]
    host = dist.new_group(backend="gloo")
    mine, theirs = filled(1.0), torch.ones(1)
    dist.all_reduce(mine, group=alone[rank])
    dist.all_reduce(theirs, group=host)
    types = [device.type for device in dist.group.WORLD._device_types]
    return [
        dist.get_backend(),
        dist.is_nccl_available(),
        types,
        [mine.tolist()[0], theirs.item()],
        [dist.get_backend(alone[rank]), dist.get_backend(host)],
    ]


BACKENDS = {
    "no backend": {"backend": None},
    "two backends": {"backend": "cpu:gloo,cuda:nccl"},
    "two backends the other way": {"backend": "cuda:nccl,cpu:gloo"},
    "device id": {"backend": "nccl", "device_id": "mine"},
    "gloo": {"backend": "gloo"},
}


def host_and_card(rank, session):
    card, host = filled(1.0), torch.ones(1)
    dist.all_reduce(card)
    if torch.device("cpu") in dist.group.WORLD._device_types:
        dist.all_reduce(host)
    dist.barrier()
    dist.barrier(device_ids=[rank])
    return [card.tolist()[0], [seen.id for seen in session.findings]]


for _name, _options in BACKENDS.items():
    CASES[_name] = (host_and_card, ([2.0, []],) * WORLD, False, "cpu", None, _options)


# NCCL's rules

_HOST = "RuntimeError: No backend type associated with device type cpu"
_GAPS = "ValueError: Tensors must be contiguous"
_IDS = (
    "ValueError: DistributedDataParallel device_ids and output_device arguments only work with "
    "single-device/multiple-device GPU modules or CPU modules, but got device_ids [{}], output_device None, "
    "and module parameters {{device(type='cpu')}}."
)
_NORM = "ValueError: SyncBatchNorm layers only work with GPU modules"


def offences(rank):
    strided = torch.arange(6.0, device="cuda").view(2, 3).t()
    return [
        lambda: dist.all_reduce(torch.ones(2)),
        lambda: dist.all_reduce(strided),
        lambda: DistributedDataParallel(network(), device_ids=[rank]),
        lambda: DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(network())),
    ]


@case([_HOST, _GAPS, _IDS.format(0), _NORM], [_HOST, _GAPS, _IDS.format(1), _NORM], strict=True)
def refused(rank, session):
    return [text_of(offence) for offence in offences(rank)]


@case([["nothing"] * 4, ["R403", "R406", "R112", "R112"]])
def healed(rank, session):
    return [[text_of(offence) for offence in offences(rank)], [seen.id for seen in session.findings]]


@case([[[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]], "cuda"])
def healed_numbers_are_right(rank, session):
    strided = torch.arange(6.0, device="cuda").view(2, 3).t()
    dist.all_reduce(strided)
    left = network()
    left[0].cuda()
    wrapped = DistributedDataParallel(left, device_ids=[rank])
    return [strided.tolist(), next(iter({p.device.type for p in wrapped.parameters()}))]


@case(
    [
        "ValueError: device_ids can only be None or contain a single element.",
        "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameter that "
        "requires a gradient.",
        "ValueError: trying to initialize the default process group twice!",
        "RuntimeError: ProcessGroupNCCL does not support recvAnysource",
    ]
)
def said_by_torch(rank, session):
    return [
        text_of(lambda: DistributedDataParallel(network().cuda(), device_ids=[0, 1])),
        text_of(lambda: DistributedDataParallel(network().cuda().requires_grad_(False))),
        text_of(lambda: dist.init_process_group("nccl", rank=rank, world_size=WORLD)),
        text_of(lambda: dist.recv(filled(0.0))),
    ]


@case([["R404"], [{"rank": 0, "op": "cuda:0"}, {"rank": 1, "op": "cuda:0"}]], card=0)
def two_ranks_on_one_card(rank, session):
    model = DistributedDataParallel(network().cuda())
    model(batch(rank).cuda()).sum().backward()
    dist.barrier()
    return [[seen.id for seen in session.findings], session.findings[0].fields["ranks"]]


@case(["DistBackendError", True], card=0, strict=True)
def two_ranks_on_one_card_refused(rank, session):
    text = text_of(lambda: DistributedDataParallel(network().cuda()))
    end = f"Duplicate GPU detected : rank {rank} and rank {1 - rank} both on CUDA device 1000"
    return [text.partition(":")[0], text.endswith(end)]


@case([], card=0)
def cards_named_by_hand(rank, session):
    """Nobody calls set_device, and nobody has to."""
    dist.barrier()
    model = DistributedDataParallel(network().cuda(rank), device_ids=[rank])
    model(batch(rank).cuda(rank)).sum().backward()
    return [seen.id for seen in session.findings]


# DistributedDataParallel: bit for bit what gloo computes on the CPU


def trained(module, device, rank, group, amp=False, no_sync=False, x=None, **options):
    model = DistributedDataParallel(
        module.to(device), device_ids=[rank] if device.type == "cuda" else None, process_group=group, **options
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=amp and device.type == "cuda")
    x, losses = (batch(rank) if x is None else x).to(device), []
    for step in range(3):
        optimizer.zero_grad()
        with model.no_sync() if no_sync and step == 1 else contextlib.nullcontext():
            with torch.autocast(device.type, torch.bfloat16, enabled=amp):
                loss = model(x).float().pow(2).mean()
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in (*model.parameters(), *model.buffers())], model


WAYS = {
    "plain": {},
    "bucket views": {"gradient_as_bucket_view": True},
    "buffers of their own": {"broadcast_buffers": False},
    "static graph": {"static_graph": True},
    "small buckets": {"bucket_cap_mb": 0.0001},
    "without synchronising": {"no_sync": True},
    "mixed precision": {"amp": True},
    "unused parameters": {"find_unused_parameters": True, "make": Forgetful},
}


def _way(make=network, **options):
    def compare(rank, session):
        x = torch.ones(3, 4) * (rank + 1) if make is Forgetful else None
        host = dist.new_group(backend="gloo")
        on_card = trained(make(), torch.device("cuda", rank), rank, None, x=x, **options)
        on_host = trained(make(), torch.device("cpu"), rank, host, x=x, **options)
        equal = all(torch.equal(a, b) for a, b in zip(on_card[1], on_host[1], strict=True))
        cards = {str(p.device) for p in on_card[2].parameters()}
        gradients = {str(p.grad.device) for p in on_card[2].parameters() if p.grad is not None}
        return [on_card[0] == on_host[0], equal, cards == gradients == {f"cuda:{rank}"}]

    return compare


for _name, _options in WAYS.items():
    CASES[f"DDP, {_name}"] = (_way(**_options), ([True, True, True],) * WORLD, False, "cpu", None, {})


@case(["cuda:0", "cuda:0", "cuda:0"], ["cuda:1", "cuda:1", "cuda:1"])
def hooks(rank, session):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    where = []
    for hook, state in (
        (default_hooks.fp16_compress_hook, None),
        (default_hooks.allreduce_hook, None),
        (powerSGD_hook.powerSGD_hook, powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)),
    ):
        model = DistributedDataParallel(network(norm=False).cuda(), device_ids=[rank])
        model.register_comm_hook(state, hook)
        for _ in range(3):
            model(batch(rank).cuda()).sum().backward()
        where.append(str(next(model.parameters()).grad.device))
    return where


@case("done")
def uneven_inputs(rank, session):
    model = DistributedDataParallel(network(norm=False).cuda(), device_ids=[rank])
    with model.join():
        for _ in range(2 + 2 * rank):
            model(batch(rank).cuda()).sum().backward()
    return "done"


@case(True)
def unused_parameters_are_told(rank, session):
    model = DistributedDataParallel(Forgetful().cuda(), device_ids=[rank])
    model(filled(1.0)).sum().backward()
    said = text_of(lambda: model(filled(1.0)))
    return said.startswith("RuntimeError: Expected to have finished reduction in the prior iteration")


@case([True, True, True, "cuda:0"], [True, True, True, "cuda:1"])
def batch_norm_over_all_ranks(rank, session):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(network()).cuda()
    wrapped = DistributedDataParallel(model, device_ids=[rank])
    wrapped(batch(rank).cuda()).pow(2).sum().backward()
    with torch.device("cpu"):
        alone = network()
    (alone(torch.cat([batch(0), batch(1)])).pow(2).sum() / WORLD).backward()
    pairs = list(zip(model.parameters(), alone.parameters(), strict=True))
    return [
        all(torch.allclose(mine.grad.cpu(), theirs.grad, rtol=1e-3, atol=1e-4) for mine, theirs in pairs),
        torch.allclose(model[1].running_mean.cpu(), alone[1].running_mean),
        torch.allclose(model[1].running_var.cpu(), alone[1].running_var, rtol=1e-4),
        str(model[1].running_var.device),
    ]


# Sharding


def stepped(model, rank):
    optimizer, losses = torch.optim.Adam(model.parameters(), 0.01), []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(batch(rank).cuda()).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 5))
    return losses


@case([True, True])
def fully_sharded(rank, session):
    from torch.distributed.fsdp import FullyShardedDataParallel

    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    replicated = stepped(DistributedDataParallel(network(norm=False).cuda(), device_ids=[rank]), rank)
    first = stepped(FullyShardedDataParallel(network(norm=False).cuda(), device_id=rank), rank)
    second = network(norm=False).cuda()
    fully_shard(second)
    return [first == replicated, stepped(second, rank) == replicated]


@case([[[0.0, 1.0], [2.0, 3.0]], 400.0, "cuda:0"], [[[4.0, 5.0], [6.0, 7.0]], 400.0, "cuda:1"])
def distributed_tensors(rank, session):
    from torch.distributed.device_mesh import init_device_mesh

    try:
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    except ImportError:
        from torch.distributed._tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cuda", (WORLD,))
    tensor = distribute_tensor(torch.arange(8.0).view(4, 2).cuda(), mesh, [Shard(0)])
    product = tensor @ tensor.t().redistribute(mesh, [Replicate()])
    return [tensor.to_local().tolist(), product.full_tensor().sum().item(), str(tensor.device)]


# What is told of it


@case(
    [
        ["enter", "0", 1, "all_reduce", ["[4]"], "float32", 16],
        ["leave", "0", 1, "all_reduce", ["[4]"], "float32", 16],
        ["enter", "0", 2, "barrier", [], "", 1],
        ["leave", "0", 2, "barrier", [], "", 1],
    ]
)
def calls_are_told(rank, session):
    told = []
    session.machine.on_collective = lambda call, state: told.append(
        [state, call.group, call.sequence, call.op, call.shapes, call.dtype, call.bytes]
    )
    dist.all_reduce(filled(1.0))
    dist.barrier(device_ids=[rank])
    return told


@case(["cuda:0", 8, [0, 1]], ["cuda:1", 8, [0, 1]], backing="meta")
def shapes_only(rank, session):
    model = DistributedDataParallel(network().cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(batch(rank).cuda()).sum().backward()
        optimizer.step()
    out, seen = torch.empty(8, device="cuda"), [None] * WORLD
    dist.all_gather_into_tensor(out, filled(1.0))
    dist.all_gather_object(seen, rank)
    return [str(next(model.parameters()).grad.device), out.numel(), seen]


def run(rank, folder):
    """Runs every case and writes {name: answer}."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    answers = {}
    for name, (function, _, strict, backing, card, options) in CASES.items():
        with virtual_cuda(gpus=WORLD, strict=strict, backing=backing) as session:
            torch.cuda.set_device(rank if card is None else card)
            options = {"backend": "nccl", "timeout": timedelta(seconds=30), **options}
            if "device_id" in options:
                options["device_id"] = torch.device("cuda", rank)
            store = (folder / name.replace(" ", "-")).as_uri()
            try:
                dist.init_process_group(init_method=store, rank=rank, world_size=WORLD, **options)
                answers[name] = function(rank, session)
            except Exception:
                answers[name] = traceback.format_exc(limit=-4)
            if dist.is_initialized():
                dist.destroy_process_group()
    (folder / f"{rank}.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]))

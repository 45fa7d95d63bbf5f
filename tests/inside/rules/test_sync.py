"""The sync table: which calls wait for the GPU, and which of them ``set_sync_debug_mode`` reports."""

import contextlib

import pytest
import torch
from rule_cases import CUDA, OTHER, arange, ones, torch_at_least
from torch.nn import utils

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

SEEN, UNSEEN, NONE = "reported", "not reported", "no wait"


def put(target, where, value):
    target[where] = value


def gradients(device):
    parameter = ones(3, device=device, requires_grad=True)
    parameter.sum().backward()
    return [parameter]


def stepped(name, **options):
    def step(device):
        getattr(torch.optim, name)(gradients(device), **options).step()

    return step


def scaled_step(device):
    parameters = gradients(device)
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    scaler.scale(ones((), device=device))
    scaler.step(optimizer)


def event_pair(device):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    return start, end


# name, what is made before the count starts, the call, what it does
TABLE = (
    ("item", lambda cuda: ones((), device=cuda), lambda x: x.item(), SEEN),
    ("float()", lambda cuda: ones((), device=cuda), float, SEEN),
    ("int()", lambda cuda: ones((), device=cuda), int, SEEN),
    ("bool()", lambda cuda: ones((), device=cuda), bool, SEEN),
    ("if", lambda cuda: ones((), device=cuda), lambda x: 1 if x > 0 else 2, SEEN),
    ("in", lambda cuda: ones(3, device=cuda), lambda x: 1.0 in x, SEEN),
    ("is_nonzero", lambda cuda: ones((), device=cuda), lambda x: torch.is_nonzero(x), SEEN),
    ("equal", lambda cuda: ones(3, device=cuda), lambda x: torch.equal(x, x.clone()), SEEN),
    ("allclose", lambda cuda: ones(3, device=cuda), lambda x: torch.allclose(x, x), SEEN),
    ("tolist", lambda cuda: ones(3, device=cuda), lambda x: x.tolist(), SEEN),
    ("repr", lambda cuda: ones(3, device=cuda), repr, SEEN),
    ("format", lambda cuda: ones((), device=cuda), lambda x: f"{x:.2f}", SEEN),
    ("cpu", lambda cuda: ones(3, device=cuda), lambda x: x.cpu(), SEEN),
    ("to cpu", lambda cuda: ones(3, device=cuda), lambda x: x.to("cpu"), SEEN),
    ("nonzero", lambda cuda: ones(3, device=cuda), lambda x: torch.nonzero(x), SEEN),
    ("argwhere", lambda cuda: ones(3, device=cuda), lambda x: torch.argwhere(x), SEEN),
    ("where of one", lambda cuda: ones(3, device=cuda), lambda x: torch.where(x), SEEN),
    ("masked_select", lambda cuda: ones(3, device=cuda), lambda x: x.masked_select(x > 0), SEEN),
    ("x[mask]", lambda cuda: ones(3, device=cuda), lambda x: x[x > 0], SEEN),
    ("x[mask] = tensor", lambda cuda: ones(3, device=cuda), lambda x: put(x, x > 0, x.clone()), SEEN),
    ("x[mask] = number", lambda cuda: ones(3, device=cuda), lambda x: put(x, x > 0, 2.0), NONE),
    ("x[cpu index]", lambda cuda: (ones(3, device=cuda), torch.tensor([1])), lambda t: t[0][t[1]], SEEN),
    (
        "x[cpu index] = tensor",
        lambda cuda: (ones(3, device=cuda), torch.tensor([1]), ones(1, device=cuda)),
        lambda t: put(t[0], t[1], t[2]),
        SEEN,
    ),
    (
        "x[cuda index]",
        lambda cuda: (ones(3, device=cuda), torch.tensor([1]).to(cuda)),
        lambda t: t[0][t[1]],
        NONE,
    ),
    (
        "x[cuda index] = tensor",
        lambda cuda: (ones(3, device=cuda), torch.tensor([1]).to(cuda)),
        lambda t: put(t[0], t[1], 2.0),
        NONE,
    ),
    ("x[1]", lambda cuda: ones(3, device=cuda), lambda x: x[1], NONE),
    ("unique", lambda cuda: ones(3, device=cuda), lambda x: torch.unique(x), SEEN),
    ("unique_consecutive", lambda cuda: ones(3, device=cuda), lambda x: torch.unique_consecutive(x), SEEN),
    ("unique by dim", lambda cuda: ones(3, 2, device=cuda), lambda x: torch.unique(x, dim=0), UNSEEN),
    ("bincount", lambda cuda: arange(3, device=cuda), lambda x: torch.bincount(x), SEEN),
    ("histc", lambda cuda: ones(3, device=cuda), lambda x: torch.histc(x), SEEN),
    ("one_hot", lambda cuda: arange(3, device=cuda), lambda x: torch.nn.functional.one_hot(x), SEEN),
    (
        "one_hot with classes",
        lambda cuda: arange(3, device=cuda),
        lambda x: torch.nn.functional.one_hot(x, num_classes=3),
        NONE,
    ),
    ("repeat_interleave", lambda cuda: arange(3, device=cuda), lambda x: torch.repeat_interleave(x, x), SEEN),
    (
        "repeat_interleave with size",
        lambda cuda: arange(3, device=cuda),
        lambda x: torch.repeat_interleave(x, x, output_size=3),
        NONE,
    ),
    ("tensor(…, device)", lambda cuda: cuda, lambda cuda: torch.tensor([1.0], device=cuda), SEEN),
    ("as_tensor(…).cuda()", lambda cuda: None, lambda _: torch.as_tensor([1.0]).cuda(), SEEN),
    ("to cuda", lambda cuda: ones(3), lambda x: x.to(CUDA), SEEN),
    ("pinned to cuda", lambda cuda: ones(3).pin_memory(), lambda x: x.to(CUDA), SEEN),
    (
        "pinned to cuda, non_blocking",
        lambda cuda: ones(3).pin_memory(),
        lambda x: x.to(CUDA, non_blocking=True),
        NONE,
    ),
    (
        "to cpu, non_blocking",
        lambda cuda: ones(3, device=cuda),
        lambda x: x.to("cpu", non_blocking=True),
        NONE,
    ),
    ("to the other GPU", lambda cuda: ones(3, device=cuda), lambda x: x.to(OTHER), NONE),
    ("copy_ to the GPU", lambda cuda: (ones(3, device=cuda), ones(3)), lambda t: t[0].copy_(t[1]), SEEN),
    ("copy_ from the GPU", lambda cuda: (ones(3), ones(3, device=cuda)), lambda t: t[0].copy_(t[1]), SEEN),
    ("module.to", lambda cuda: torch.nn.Linear(2, 2), lambda m: m.to(CUDA), SEEN),
    ("cholesky", lambda cuda: torch.eye(3, device=cuda), lambda x: torch.linalg.cholesky(x), SEEN),
    ("inv", lambda cuda: torch.eye(3, device=cuda), lambda x: torch.linalg.inv(x), SEEN),
    ("solve", lambda cuda: torch.eye(3, device=cuda), lambda a: torch.linalg.solve(a, a), SEEN),
    ("clip_grad_norm_", gradients, lambda ps: utils.clip_grad_norm_(ps, 1.0), NONE),
    (
        "clip_grad_norm_ with check",
        gradients,
        lambda ps: utils.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True),
        SEEN,
    ),
    ("GradScaler.step", lambda cuda: cuda, scaled_step, SEEN),
    # torch 2.4 reads multinomial's sanity checks on the host; ``_assert_async`` does them since 2.5.
    (
        "multinomial",
        lambda cuda: ones(3, device=cuda),
        lambda x: torch.multinomial(x, 1),
        NONE if torch_at_least("2.5") else SEEN,
    ),
    ("randperm", lambda cuda: cuda, lambda cuda: torch.randperm(20000, device=cuda), NONE),
    ("dropout", lambda cuda: ones(3, device=cuda), lambda x: torch.nn.functional.dropout(x), NONE),
    ("any", lambda cuda: ones(3, device=cuda), lambda x: x.any(), NONE),
    ("topk", lambda cuda: ones(3, device=cuda), lambda x: x.topk(1), NONE),
    ("sort", lambda cuda: ones(3, device=cuda), lambda x: torch.sort(x), NONE),
    ("matmul", lambda cuda: ones(3, 3, device=cuda), lambda x: x @ x, NONE),
    (
        "cpu scalar operand",
        lambda cuda: (ones(3, device=cuda), torch.tensor(2.0)),
        lambda t: t[0] * t[1],
        NONE,
    ),
    (
        "backward",
        lambda cuda: ones(3, device=cuda, requires_grad=True),
        lambda x: (x * x).sum().backward(),
        NONE,
    ),
    ("SGD", lambda cuda: cuda, stepped("SGD", lr=0.1), NONE),
    ("Adam, foreach", lambda cuda: cuda, stepped("Adam", foreach=True), NONE),
    ("Adam, for loop", lambda cuda: cuda, stepped("Adam", foreach=False), NONE),
    ("Adam, fused", lambda cuda: cuda, stepped("Adam", fused=True), NONE),
    ("synchronize", lambda cuda: ones(3, device=cuda), lambda x: torch.cuda.synchronize(), UNSEEN),
    (
        "stream.synchronize",
        lambda cuda: ones(3, device=cuda),
        lambda x: torch.cuda.current_stream().synchronize(),
        UNSEEN,
    ),
    ("event.synchronize", event_pair, lambda pair: pair[1].synchronize(), UNSEEN),
    (
        "coalesce",
        lambda cuda: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,), device=cuda),
        lambda s: s.coalesce(),
        UNSEEN,
    ),
)


@contextlib.contextmanager
def debug_mode(mode):
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(("name", "prepare", "call", "kind"), TABLE, ids=[row[0] for row in TABLE])
def test_count(name, prepare, call, kind, session):
    argument = prepare(CUDA)
    before = session.sync_count
    call(argument)
    assert (session.sync_count > before) == (kind is not NONE)


@pytest.mark.parametrize(("name", "prepare", "call", "kind"), TABLE, ids=[row[0] for row in TABLE])
def test_row_68_debug_mode(name, prepare, call, kind, session):
    argument = prepare(CUDA)
    with debug_mode("error"):
        if kind is SEEN:
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                call(argument)
        else:
            call(argument)
    with debug_mode("warn"):
        if kind is SEEN:
            with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
                call(argument)


def test_row_68_debug_mode_is_told(session):
    assert torch.cuda.get_sync_debug_mode() == 0
    for number, name in ((1, "warn"), (2, "error"), (0, "default")):
        torch.cuda.set_sync_debug_mode(name)
        assert torch.cuda.get_sync_debug_mode() == number


@pytest.mark.parametrize(
    "call",
    [lambda x, mask: x[mask], lambda x, mask: put(x, mask, ones(2, device=CUDA))],
    ids=["read", "write"],
)
def test_a_mask_on_the_host_is_counted_on_the_host(call, session):
    # torch 2.9 finds the elements on the host and copies them from pinned memory; earlier ones wait for the copy.
    before = session.sync_count
    call(ones(3, device=CUDA), torch.tensor([True, False, True]))
    assert (session.sync_count > before) == (not torch_at_least("2.9"))


def test_a_sync_is_placed_at_its_line(session):
    value = ones((), device=CUDA)
    value.item()  # SYNC
    ((place, _), count) = list(session.machine.syncs.items())[-1]
    assert count == 1
    with open(__file__) as source:
        lines = source.read().split("\n")
    assert lines[place[1] - 1].endswith("# SYNC")

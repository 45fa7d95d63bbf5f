"""What is legal on CUDA stays legal: optimizers, schedulers, clipping, precision, loaders and sequences."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, agree
from rule_parts import gradients, mlp, r, train
from torch import nn, optim
from torch.nn.utils import rnn
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecations of torch


def optimized(cls, **options):
    def snippet(device):
        model = mlp(device)
        if device == "cpu" and "foreach" in inspect.signature(cls).parameters:
            options.setdefault("foreach", True)  # what CUDA does by default
        wanted = (2,) if cls.__name__ == "Muon" else (1, 2)
        parameters = [p for p in model.parameters() if p.dim() in wanted]
        return train(device, model, cls(parameters, **options))

    return snippet


def sparse_adam(device):
    table = nn.Embedding(6, 3, sparse=True).to(device)
    optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        table(torch.randint(6, (4,)).to(device)).pow(2).sum().backward()
        optimizer.step()
    return table.weight


OPTIMIZERS = {
    **{
        cls.__name__: optimized(cls, lr=0.01)
        for _, cls in inspect.getmembers(optim, inspect.isclass)
        if issubclass(cls, optim.Optimizer) and cls not in (optim.Optimizer, optim.SparseAdam)
    },
    "SparseAdam": sparse_adam,
    "SGD momentum": optimized(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam for loop": optimized(optim.Adam, foreach=False, amsgrad=True),
    "Adam foreach": optimized(optim.Adam, foreach=True, weight_decay=0.1),
    "AdamW differentiable off, maximize": optimized(optim.AdamW, maximize=True),
    "RMSprop centered": optimized(optim.RMSprop, centered=True, momentum=0.9),
    "LBFGS": lambda d: (lambda m: train(d, m, optim.LBFGS(m.parameters(), max_iter=3)))(nn.Linear(3, 2).to(d)),
    "parameter groups": lambda d: (
        lambda m: train(
            d,
            m,
            optim.SGD([{"params": m[0].parameters(), "lr": 0.1}, {"params": m[3].parameters()}], lr=0.01),
        )
    )(mlp(d)),
}

SCHEDULERS = {
    "StepLR": lambda o: optim.lr_scheduler.StepLR(o, 1),
    "MultiStepLR": lambda o: optim.lr_scheduler.MultiStepLR(o, [1, 2]),
    "ExponentialLR": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5),
    "CosineAnnealingLR": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 3),
    "CosineAnnealingWarmRestarts": lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda o: optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2, cycle_momentum=False),
    "OneCycleLR": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=5),
    "ReduceLROnPlateau": lambda o: optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "LambdaLR": lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "LinearLR": lambda o: optim.lr_scheduler.LinearLR(o),
    "PolynomialLR": lambda o: optim.lr_scheduler.PolynomialLR(o, 5),
    "SequentialLR": lambda o: optim.lr_scheduler.SequentialLR(
        o, [optim.lr_scheduler.ConstantLR(o), optim.lr_scheduler.ExponentialLR(o, 0.9)], [1]
    ),
}


def scheduled(make):
    def snippet(device):
        model = mlp(device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        return train(device, model, optimizer, scheduler=make(optimizer))

    return snippet


def clipped(name, **options):
    def snippet(device):
        model = mlp(device)
        gradients(model, model(r(device, 4, 3)).sum())
        return getattr(nn.utils, name)(model.parameters(), 0.1, **options), [p.grad for p in model.parameters()]

    return snippet


def accumulated(device):
    model = mlp(device)
    for _ in range(3):
        (model(r(device, 4, 3)).sum() / 3).backward()
    return [p.grad for p in model.parameters()]


def averaged(device):
    model = mlp(device)
    average = optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    return list(average.module.parameters())


def scaled(device):
    kind = torch.device(device).type
    model = mlp(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(kind, init_scale=4.0)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(r(device, 4, 3)), torch.tensor([0, 1, 0, 1]).to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return list(model.parameters())


def packed(device):
    lengths = [4, 3, 1]
    model = nn.LSTM(2, 3, batch_first=True, bidirectional=True).to(device)
    batch = rnn.pack_padded_sequence(r(device, 3, 4, 2), torch.tensor(lengths), batch_first=True)
    output, state = model(batch)
    padded, _ = rnn.pad_packed_sequence(output, batch_first=True)
    return padded, state, gradients(model, padded.sum())


def sequences(device):
    parts = [r(device, n, 2) for n in (3, 1, 2)]
    return rnn.pad_sequence(parts), rnn.pack_sequence(parts, enforce_sorted=False).data


def parametrized(device):
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)).to(device)
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)).to(device)
    return gradients(layer, layer(r(device, 2, 3)).sum()), spectral(r(device, 2, 3))


def loaded(device, **options):
    data = TensorDataset(torch.randn(8, 3), torch.arange(8))
    return [(x.to(device, non_blocking=True), y.to(device)) for x, y in DataLoader(data, batch_size=4, **options)]


def half(device):
    model = nn.Linear(3, 2).to(device).bfloat16()
    return gradients(model, model(r(device, 4, 3).bfloat16()).float().sum())


def initialised(device):
    weight = torch.empty(4, 3, device=device)
    names = (
        "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ normal_ uniform_ "
        "ones_ zeros_ "
        "trunc_normal_ eye_"
    )
    return [getattr(nn.init, name)(weight.clone()) for name in names.split()]


def exponential_average(device):
    teacher, student = mlp(device), mlp(device)
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
            old.mul_(0.9).add_(new, alpha=0.1)
            old.data.copy_(old.data * 0.5 + new.data * 0.5)
    return list(teacher.parameters())


def over_two_gpus(device, **options):
    """A model whose halves are on two GPUs (on the CPU: nowhere else)."""
    other = OTHER if device == CUDA else device
    first, second = nn.Linear(3, 4).to(device), nn.Linear(4, 2).to(other)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = optim.Adam(parameters, **options)
    norms = []
    for _ in range(3):
        optimizer.zero_grad()
        second(first(r(device, 5, 3)).to(other)).pow(2).sum().backward()
        norms.append(nn.utils.clip_grad_norm_(parameters, 0.5))
        optimizer.step()
    for parameter in second.parameters():
        assert {str(t.device) for t in (parameter, parameter.grad, optimizer.state[parameter]["exp_avg"])} == {other}
    return norms, [p.to(device) for p in parameters]


def _tied(device):
    table, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = table.weight
    model = nn.Sequential(table, head).to(device)
    assert model[0].weight is model[1].weight
    return gradients(model, model(torch.tensor([1, 2]).to(device)).sum())


TABLE = {
    **{f"optimizer {name}": snippet for name, snippet in OPTIMIZERS.items()},
    **{f"scheduler {name}": scheduled(make) for name, make in SCHEDULERS.items()},
    "clip_grad_norm_": clipped("clip_grad_norm_"),
    "clip_grad_norm_ foreach": clipped("clip_grad_norm_", foreach=True),
    "clip_grad_norm_ inf": clipped("clip_grad_norm_", norm_type=float("inf")),
    "clip_grad_value_": clipped("clip_grad_value_"),
    "gradient accumulation": accumulated,
    "two GPUs": over_two_gpus,
    "two GPUs, for loop": lambda d: over_two_gpus(d, foreach=False),
    "averaged model": averaged,
    "exponential average": exponential_average,
    "autocast and GradScaler": scaled,
    "packed sequences": packed,
    "padded sequences": sequences,
    "parametrizations": parametrized,
    "loader": loaded,
    "loader, pinned": lambda d: loaded(d, pin_memory=torch.device(d).type == "cuda"),
    "loader with workers": lambda d: loaded(d, num_workers=1, multiprocessing_context="fork"),
    "bfloat16 module": half,
    "initialisers": initialised,
    "parameters_to_vector": lambda d: nn.utils.parameters_to_vector(mlp(d).parameters()),
    "weight tying": lambda d: _tied(d),
    "apply of an initialiser": lambda d: list(
        mlp(d).apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else 0).parameters()
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)


def test_autocast_refuses_the_cross_entropy_of_probabilities(session):
    """CUDA's autocast does, though the CPU's computes it; a region that is off, or a tensor of the host, is legal."""
    loss_of, (given, wanted) = nn.BCELoss(), torch.full((2, 3), 0.5).to(CUDA)
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        loss_of(given, wanted)
    with torch.autocast("cuda"), torch.autocast("cuda", enabled=False):
        loss_of(given, wanted)
    with torch.autocast("cuda"):
        loss_of(given.cpu(), wanted.cpu())

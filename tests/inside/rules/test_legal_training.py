"""What is legal on CUDA stays legal: training, transforms, saving and loading, loaders, hooks and autograd."""

import contextlib
import copy
import inspect
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
from rule_cases import CUDA, OTHER, agree, faults
from torch import nn, optim
from torch.nn.utils import rnn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecations of torch


def r(device, *shape):
    return torch.randn(*shape).to(device)


def mlp(device):
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2)).to(device)


def train(device, model, optimizer, steps=3, scheduler=None):
    losses = []
    for _ in range(steps):
        x, y = r(device, 4, 3), torch.randint(2, (4,)).to(device)

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).detach())
        if scheduler is not None:
            scheduler.step(*([losses[-1]] if isinstance(scheduler, optim.lr_scheduler.ReduceLROnPlateau) else []))
    return losses, list(model.parameters()), _floats(optimizer.state_dict())


def _floats(state):
    """State tensors but the step counters, which stay on the CPU by rule."""
    return [t for entry in state["state"].values() for t in entry.values() if isinstance(t, torch.Tensor) and t.dim()]


def optimized(cls, **options):
    def snippet(device):
        model = mlp(device)
        if device == "cpu" and "foreach" in inspect.signature(cls).parameters:
            options.setdefault("foreach", True)  # what CUDA does by default
        if cls.__name__ == "Muon":
            parameters = [p for p in model.parameters() if p.dim() == 2]
        else:
            parameters = model.parameters()
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
    **{cls.__name__: optimized(cls, lr=0.01) for _, cls in inspect.getmembers(optim, inspect.isclass)
       if issubclass(cls, optim.Optimizer) and cls not in (optim.Optimizer, optim.SparseAdam)},
    "SparseAdam": sparse_adam,
    "SGD momentum": optimized(optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam for loop": optimized(optim.Adam, foreach=False, amsgrad=True),
    "Adam foreach": optimized(optim.Adam, foreach=True, weight_decay=0.1),
    "AdamW differentiable off, maximize": optimized(optim.AdamW, maximize=True),
    "RMSprop centered": optimized(optim.RMSprop, centered=True, momentum=0.9),
    "LBFGS": lambda d: (lambda m: train(d, m, optim.LBFGS(m.parameters(), max_iter=3)))(nn.Linear(3, 2).to(d)),
    "parameter groups": lambda d: (lambda m: train(d, m, optim.SGD(
        [{"params": m[0].parameters(), "lr": 0.1}, {"params": m[3].parameters()}], lr=0.01)))(mlp(d)),
}  # fmt: skip

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
        o, [optim.lr_scheduler.ConstantLR(o), optim.lr_scheduler.ExponentialLR(o, 0.9)], [1]),
}  # fmt: skip


def scheduled(make):
    def snippet(device):
        model = mlp(device)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        return train(device, model, optimizer, scheduler=make(optimizer))

    return snippet


def gradients(model, loss):
    loss.backward()
    return [p.grad for p in model.parameters()]


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


def checkpointed(reentrant):
    def snippet(device):
        model = mlp(device)
        x = r(device, 4, 3).requires_grad_()
        return gradients(model, checkpoint(model, x, use_reentrant=reentrant).sum()), x.grad

    return snippet


class Cube(torch.autograd.Function):
    """Saves, computes and differentiates, as custom functions do."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


def hooks(device):
    model = mlp(device)
    seen = []
    model[0].register_forward_hook(lambda module, inputs, output: seen.append(output.detach()))
    model[0].register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
    model[3].register_full_backward_hook(lambda module, before, after: seen.append(after[0]))
    x = r(device, 4, 3).requires_grad_()
    x.register_hook(lambda gradient: gradient * 2)
    model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    model(x).sum().backward()
    return seen, x.grad


def double_backward(device):
    x = r(device, 3).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.pow(2).sum().backward()
    return first.detach(), x.grad


def gradchecked(device):
    x = torch.randn(3, dtype=torch.float64).to(device).requires_grad_()
    return torch.tensor(torch.autograd.gradcheck(lambda x: (x.sin() * x).sum(), (x,)), device=device)


def saved_hooks(device):
    x = r(device, 3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(device)):
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


def saved_on_cpu(device):
    x = r(device, 3).requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


def functional(device):
    model = nn.Linear(3, 2).to(device)
    parameters = dict(model.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x,)).pow(2).sum()

    x = r(device, 4, 3)
    per_sample = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    return per_sample, torch.func.functional_call(model, parameters, (x,))


def stacked(device):
    models = [nn.Linear(3, 2).to(device) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    return torch.func.vmap(lambda p, b, x: torch.func.functional_call(models[0], (p, b), (x,)), (0, 0, None))(
        parameters, buffers, r(device, 4, 3)
    )


def scripted(device):
    model = torch.jit.script(nn.Sequential(nn.Linear(3, 4), nn.ReLU()).to(device))
    return gradients(model, model(r(device, 2, 3)).sum())


def traced(device):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).to(device)
    return torch.jit.trace(model, r(device, 2, 3))(r(device, 5, 3))


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


class Listed(nn.Module):
    """Parameters in lists and dictionaries, a buffer, and a tensor made on the way."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(2)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.randn(3))})
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        for weight, layer in zip(self.weights, self.layers, strict=True):
            x = layer(x * weight) * self.scale + torch.arange(3, device=x.device)
        return x + self.named["a"]


def rebuilt(copy_of):
    def snippet(device):
        model = Listed().to(device)
        other = copy_of(model)
        x = r(device, 2, 3)
        assert torch.equal(other(x), model(x))
        assert other.scale.data_ptr() != model.scale.data_ptr()
        return other(x), dict(other.state_dict()), gradients(other, other(x).sum())

    return snippet


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def resumed(device):
    model = mlp(device)
    optimizer = optim.Adam(model.parameters())
    train(device, model, optimizer)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu")
    again = mlp(device)
    again.load_state_dict(saved["model"])
    optimizer = optim.Adam(again.parameters())
    optimizer.load_state_dict(saved["optimizer"])
    return train(device, again, optimizer)


def loaded(device, **options):
    data = TensorDataset(torch.randn(8, 3), torch.arange(8))
    return [(x.to(device, non_blocking=True), y.to(device)) for x, y in DataLoader(data, batch_size=4, **options)]


def half(device):
    model = nn.Linear(3, 2).to(device).bfloat16()
    return gradients(model, model(r(device, 4, 3).bfloat16()).float().sum())


def initialised(device):
    weight = torch.empty(4, 3, device=device)
    names = (
        "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ normal_ uniform_ ones_ zeros_ "
        "trunc_normal_ eye_"
    )
    return [getattr(nn.init, name)(weight.clone()) for name in names.split()]


def without_gradients(device):
    model = mlp(device).eval()
    with torch.no_grad():
        first = model(r(device, 4, 3))
    with torch.inference_mode():
        second = model(r(device, 4, 3)) * 2
    return first, second.clone()


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
    "checkpoint": checkpointed(False),
    "checkpoint, reentrant": checkpointed(True),
    "checkpoint_sequential": lambda d: (lambda m: gradients(m, checkpoint_sequential(
        m, 2, r(d, 4, 3).requires_grad_(), use_reentrant=False).sum()))(mlp(d)),
    "autograd.Function": lambda d: gradients(nn.Linear(3, 2).to(d), Cube.apply(r(d, 3).requires_grad_()).sum()) and r(d, 1),
    "autograd.Function, gradient": lambda d: torch.autograd.grad(Cube.apply(x := r(d, 3).requires_grad_()).sum(), x),
    "hooks": hooks,
    "double backward": double_backward,
    "gradcheck": gradchecked,
    "saved tensor hooks": saved_hooks,
    "save_on_cpu": saved_on_cpu,
    "vmap, grad, functional_call": functional,
    "stack_module_state": stacked,
    "jvp": lambda d: torch.func.jvp(torch.sin, (r(d, 3),), (r(d, 3),)),
    "vjp": lambda d: (lambda out, back: (out, back(r(d, 3))))(*torch.func.vjp(torch.sin, r(d, 3))),
    "jacrev, jacfwd, hessian": lambda d: [
        f(lambda x: (x**3).sum())(r(d, 3)) for f in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian)],
    "autograd.functional": lambda d: torch.autograd.functional.jacobian(torch.sin, r(d, 3)),
    "jit.script": scripted,
    "jit.trace": traced,
    "packed sequences": packed,
    "padded sequences": sequences,
    "parametrizations": parametrized,
    "deepcopy": rebuilt(copy.deepcopy),
    "pickle": rebuilt(lambda model: pickle.loads(pickle.dumps(model))),
    "save and load a module": rebuilt(through_a_file),
    "resume": resumed,
    "deepcopy of a leaf": lambda d: copy.deepcopy(r(d, 3).requires_grad_()),
    "loader": loaded,
    "loader, pinned": lambda d: loaded(d, pin_memory=torch.device(d).type == "cuda"),
    "loader with workers": lambda d: loaded(d, num_workers=1, multiprocessing_context="fork"),
    "bfloat16 module": half,
    "initialisers": initialised,
    "no_grad, inference_mode": without_gradients,
    "parameters_to_vector": lambda d: nn.utils.parameters_to_vector(mlp(d).parameters()),
    "requires_grad_, freeze": lambda d: gradients(m := mlp(d), m(r(d, 2, 3)).sum())[:2],
    "retain_graph, two losses": lambda d: _two_losses(d),
    "detach in a loop": lambda d: _carried(d),
    "weight tying": lambda d: _tied(d),
    "apply of an initialiser": lambda d: list(mlp(d).apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else 0).parameters()),
}  # fmt: skip


def _two_losses(device):
    model = mlp(device)
    output = model(r(device, 4, 3))
    output.sum().backward(retain_graph=True)
    output.pow(2).sum().backward()
    return [p.grad for p in model.parameters()]


def _carried(device):
    model, state = nn.GRUCell(3, 4).to(device), torch.zeros(2, 4, device=device)
    for _ in range(3):
        state = model(r(device, 2, 3), state.detach())
    return state, gradients(model, state.sum())


def _tied(device):
    table, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    head.weight = table.weight
    model = nn.Sequential(table, head).to(device)
    assert model[0].weight is model[1].weight
    return gradients(model, model(torch.tensor([1, 2]).to(device)).sum())


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)


def saved(device):
    file = io.BytesIO()
    torch.save({"w": torch.arange(3.0, device=device), "n": 1}, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, CUDA),
        ("cpu", "cpu"),
        ("cuda", CUDA),
        (OTHER, OTHER),
        (torch.device("cpu"), "cpu"),
        (torch.device("cuda", 1), OTHER),
        ({CUDA: OTHER}, OTHER),
        ({CUDA: "cpu"}, "cpu"),
        ({OTHER: "cpu"}, CUDA),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.cuda(1), OTHER),
        (lambda storage, location: None, CUDA),
    ],
    ids=["none", "cpu", "cuda", "cuda:1", "device cpu", "device cuda:1", "map", "map to cpu", "map of another",
         "function", "function to cuda:1", "function without answer"],
)  # fmt: skip
@pytest.mark.parametrize("weights_only", [True, False])
def test_map_location(map_location, expected, weights_only, session):
    value = torch.load(saved(CUDA), map_location=map_location, weights_only=weights_only)["w"]
    assert str(value.device) == expected
    assert value.tolist() == [0.0, 1.0, 2.0]
    assert faults(session) == []


def test_a_file_of_the_cpu_stays_there(session):
    assert str(torch.load(saved("cpu"))["w"].device) == "cpu"
    assert str(torch.load(saved("cpu"), map_location=CUDA)["w"].device) == CUDA


def test_views_keep_sharing_through_a_file(session):
    file = io.BytesIO()
    base = torch.zeros(4, device=CUDA)
    torch.save([base, base[:2]], file)
    file.seek(0)
    base, view = torch.load(file)
    view.fill_(1)
    assert base.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert str(view.device) == CUDA


@pytest.mark.parametrize("assign", [True, False])
def test_load_state_dict(assign, session):
    model = Listed().to(CUDA)
    model.load_state_dict(Listed().state_dict(), assign=assign)
    assert {str(p.device) for p in model.parameters()} == {"cpu" if assign else CUDA}


def test_step_counters_stay_on_the_cpu(session):
    model = mlp(CUDA)
    optimizer = optim.Adam(model.parameters())
    train(CUDA, model, optimizer, 1)
    state = optimizer.state[model[0].weight]
    assert (str(state["step"].device), str(state["exp_avg"].device)) == ("cpu", CUDA)


def test_pinned_memory(session):
    data = TensorDataset(torch.randn(8, 3))
    for (batch,) in DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()
        assert str(batch.device) == "cpu"
        assert not batch.to(CUDA, non_blocking=True).is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.empty(3).is_pinned()


def test_what_a_tensor_says_of_itself(session):
    x = torch.ones(3, device=CUDA)
    assert (x.is_cuda, x.is_cpu, x.get_device(), x.device.index, x.type()) == (True, False, 0, 0, "torch.cuda.FloatTensor")
    assert "device='cuda:0'" in repr(x)
    assert x.device == torch.device("cuda:0") != torch.device("cuda:1")
    assert x.storage().device == x.untyped_storage().device == x.device
    assert x.untyped_storage().is_cuda
    y = torch.ones(3)
    assert (y.is_cuda, y.get_device(), y.type()) == (False, -1, "torch.FloatTensor")
    assert "device" not in repr(y)
    assert torch.ones(3).cuda(1).get_device() == 1
    with torch.cuda.device(1):
        assert torch.ones(3, device="cuda").get_device() == 1
    assert hash(x) is not None


def test_current_device_follows_set_device(session):
    torch.cuda.set_device(1)
    with contextlib.ExitStack() as stack:
        stack.callback(torch.cuda.set_device, 0)
        assert torch.cuda.current_device() == 1
        assert torch.ones(3, device="cuda").get_device() == torch.ones(3).cuda().get_device() == 1
        assert nn.Linear(2, 2).cuda().weight.get_device() == 1

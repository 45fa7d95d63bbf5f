"""What is legal on CUDA stays legal: autograd, checkpointing, hooks, transforms and TorchScript."""

import pytest
import torch
from rule_cases import CUDA, agree
from rule_parts import gradients, mlp, r
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

pytestmark = pytest.mark.filterwarnings("ignore")  # deprecations of torch


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


class Named(torch.Tensor):
    """A subclass that only carries a name."""


def subclassed(device):
    leaf = r(device, 3).requires_grad_()
    x = leaf.as_subclass(Named)
    y = (x.to(device) * x.detach().clone()).exp()
    y.sum().backward()
    assert isinstance(y, Named)
    return y.as_subclass(torch.Tensor), leaf.grad


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


def without_gradients(device):
    model = mlp(device).eval()
    with torch.no_grad():
        first = model(r(device, 4, 3))
    with torch.inference_mode():
        second = model(r(device, 4, 3)) * 2
    return first, second.clone()


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


TABLE = {
    "checkpoint": checkpointed(False),
    "checkpoint, reentrant": checkpointed(True),
    "checkpoint_sequential": lambda d: (
        lambda m: gradients(m, checkpoint_sequential(m, 2, r(d, 4, 3).requires_grad_(), use_reentrant=False).sum())
    )(mlp(d)),
    "autograd.Function": lambda d: (
        gradients(nn.Linear(3, 2).to(d), Cube.apply(r(d, 3).requires_grad_()).sum()) and r(d, 1)
    ),
    "autograd.Function, gradient": lambda d: torch.autograd.grad(Cube.apply(x := r(d, 3).requires_grad_()).sum(), x),
    "Tensor subclass": subclassed,
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
        f(lambda x: (x**3).sum())(r(d, 3)) for f in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian)
    ],
    "autograd.functional": lambda d: torch.autograd.functional.jacobian(torch.sin, r(d, 3)),
    "jit.script": scripted,
    "jit.trace": traced,
    "no_grad, inference_mode": without_gradients,
    "requires_grad_, freeze": lambda d: gradients(m := mlp(d), m(r(d, 2, 3)).sum())[:2],
    "retain_graph, two losses": lambda d: _two_losses(d),
    "detach in a loop": lambda d: _carried(d),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_gpu_computes_what_the_cpu_does(name):
    agree(TABLE[name], CUDA)

"""Rules 44-46, 48 and 87-90: gradients and moves between devices."""

import pytest
import torch
from rule_cases import CUDA, OTHER, Legal, Refused, ones, two_devices, zeros
from torch import nn

HOST = "cpu"


def assign_gradient(on_tensor, on_gradient):
    tensor = ones(3, device=on_tensor, requires_grad=True)
    tensor.grad = ones(3, device=on_gradient)


def grad_type(gradient, tensor):
    return (
        f"attempting to assign a gradient with device type '{gradient}' to a tensor with device type "
        f"'{tensor}'. "
        "Please ensure that the gradient and the tensor are on the same device"
    )


class OnTheHost(torch.autograd.Function):
    """Returns its gradient on the CPU, as code that goes through NumPy does."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.cpu() * 2


def adam_with_state_on_the_host(device, foreach):
    parameter = nn.Parameter(ones(3, device=device))
    optimizer = torch.optim.Adam([parameter], foreach=foreach)
    for _ in range(2):
        parameter.grad = ones(3, device=device)
        optimizer.step()
        state = optimizer.state[parameter]
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = state[name].cpu()


def assigned_data(device):
    parameter = nn.Parameter(ones(3))
    parameter.data = ones(3, device=device)
    return parameter


def gradient_of(move, start):
    """The gradient that reaches a leaf on ``start`` through ``move``."""
    leaf = ones(3, device=start, requires_grad=True)
    (move(leaf) * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0, 3.0]
    return leaf.grad


def through_a_host_buffer(device, use):
    source = ones(2, device=device, requires_grad=True)
    buffer = zeros(2, 3)
    buffer[:, 1] = source
    use(buffer).sum().backward()
    return source.grad


def copied(start, end):
    def move(leaf):
        target = zeros(3, device=end)
        target.copy_(leaf)
        return target

    return gradient_of(move, start)


REFUSED = (
    Refused(44, "cuda gradient", lambda cuda: assign_gradient(HOST, cuda), grad_type("cuda", "cpu")),
    Refused(44, "cpu gradient", lambda cuda: assign_gradient(cuda, HOST), grad_type("cpu", "cuda")),
    Refused(
        44,
        "gradient of the other GPU",
        lambda cuda: assign_gradient(cuda, OTHER),
        "attempting to assign a gradient located on device with index '1' to a tensor located on device with "
        "index '0'. Please ensure that the gradient and the tensor are on the same device",
    ),
    Refused(
        48,
        "gradient from the host",
        lambda cuda: OnTheHost.apply(ones(3, device=cuda, requires_grad=True)).sum().backward(),
        "Function OnTheHostBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu",
    ),
    Refused(
        89,
        "gradient from the host, at backward",
        lambda cuda: OnTheHost.apply(nn.Linear(3, 3, device=cuda)(ones(3, device=cuda))).sum().backward(),
        "expected device cuda:0 but got cpu",
        part=True,
    ),
    Refused(
        87,
        "Adam with state on the host",
        lambda cuda: adam_with_state_on_the_host(cuda, foreach=True),
        two_devices(),
    ),
    Refused(
        87,
        "Adam with state on the host, default",
        lambda cuda: adam_with_state_on_the_host(cuda, foreach=None),
        two_devices(),
    ),
    Refused(
        88,
        "the host buffer where it is used",
        lambda cuda: through_a_host_buffer(cuda, lambda buffer: buffer * ones(2, 3, device=cuda)),
        two_devices(),
    ),
    Refused(
        46,
        "cuda(n) keeps the device it is given",
        lambda cuda: ones(3).cuda(1) + ones(3).cuda(),
        two_devices(OTHER, CUDA),
    ),
)

LEGAL = (
    Legal(45, "data of another device", assigned_data),
    Legal(46, "copy_ to the GPU", lambda cuda: ones(3, device=cuda).copy_(ones(3))),
    Legal(46, "copy_ from the GPU", lambda cuda: ones(3).copy_(ones(3, device=cuda)), device=HOST),
    Legal(46, "copy_ between GPUs", lambda cuda: ones(3, device=cuda).copy_(ones(3, device=OTHER))),
    Legal(46, "to", lambda cuda: (ones(3).to(cuda), ones(3).to(cuda, torch.float64), ones(3).to(device=cuda))),
    Legal(46, "to another tensor's device", lambda cuda: ones(3).to(ones(1, device=cuda))),
    Legal(46, "to as Module.to calls it", lambda cuda: ones(3).to(torch.device(cuda), None, True)),
    Legal(46, "to, index of GPU", lambda cuda: ones(3).to(0)),
    Legal(46, "cuda", lambda cuda: (ones(3).cuda(), ones(3).cuda(0), ones(3).cuda(non_blocking=True))),
    Legal(46, "cpu", lambda cuda: ones(3, device=cuda).cpu(), device=HOST),
    Legal(46, "scattered by copy", lambda cuda: torch.select_scatter(ones(2, 2, device=cuda), ones(2), 0, 0)),
    Legal(
        46,
        "sizes of a tensor elsewhere",
        lambda cuda: (
            ones(4, device=cuda).view_as(ones(2, 2)),
            ones(1, device=cuda).expand_as(ones(3)),
            ones(4, device=cuda).reshape_as(ones(2, 2)),
        ),
    ),
    Legal(46, "between GPUs", lambda cuda: ones(3, device=cuda).to(OTHER), device=OTHER),
    Legal(46, "type", lambda cuda: ones(3).type("torch.cuda.HalfTensor")),
    Legal(89, "zero-dim in backward", lambda cuda: gradient_of(lambda x: x * ones((), requires_grad=True), cuda)),
    Legal(90, "gradient through to", lambda cuda: gradient_of(lambda x: x.to(cuda), HOST), device=HOST),
    Legal(90, "gradient through cuda()", lambda cuda: gradient_of(lambda x: x.cuda(), HOST), device=HOST),
    Legal(90, "gradient through cpu()", lambda cuda: gradient_of(lambda x: x.cpu(), cuda)),
    Legal(90, "gradient through the other GPU", lambda cuda: gradient_of(lambda x: x.to(OTHER), cuda)),
    Legal(
        90,
        "gradient through a dtype",
        lambda cuda: gradient_of(lambda x: x.to(cuda, torch.float64), HOST),
        device=HOST,
    ),
    Legal(90, "gradient through copy_ to the GPU", lambda cuda: copied(HOST, cuda), device=HOST),
    Legal(90, "gradient through copy_ from the GPU", lambda cuda: copied(cuda, HOST)),
    Legal(
        88,
        "gradient through a host buffer",
        lambda cuda: through_a_host_buffer(cuda, lambda buffer: buffer * 2),
    ),
    Legal(
        88,
        "gradient through a buffer that is moved",
        lambda cuda: through_a_host_buffer(cuda, lambda buffer: buffer.to(cuda) * 2),
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case, session):
    case.check()


@pytest.mark.parametrize("case", LEGAL, ids=str)
def test_legal(case, session):
    case.check(session)


def test_row_90_both_ends_keep_their_gradients(session):
    first = nn.Linear(2, 2, device=CUDA)
    second = nn.Linear(2, 2, device=OTHER)
    third = nn.Linear(2, 2)
    x = ones(1, 2, device=CUDA)
    third(second(first(x).to(OTHER)).cpu()).sum().backward()
    for layer, device in ((first, CUDA), (second, OTHER), (third, HOST)):
        assert {str(p.grad.device) for p in layer.parameters()} == {device}

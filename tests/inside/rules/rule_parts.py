"""Tensors, a model and a training loop for the tests of what is legal."""

import torch
import torch.nn.functional as F
from torch import nn, optim


def r(device, *shape):
    """Normal numbers, drawn on the CPU, so that they are the same for every device."""
    return torch.randn(*shape).to(device)


def positive(device, *shape):
    return torch.rand(*shape).add(0.1).to(device)


def whole(device, *shape, high=5):
    return torch.randint(high, shape).to(device)


def words(*lines):
    return " ".join(lines).split()


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
    return losses, list(model.parameters()), floats(optimizer.state_dict())


def floats(state):
    """State tensors but the step counters, which stay on the CPU by rule."""
    return [t for entry in state["state"].values() for t in entry.values() if isinstance(t, torch.Tensor) and t.dim()]


def gradients(model, loss):
    loss.backward()
    return [p.grad for p in model.parameters()]

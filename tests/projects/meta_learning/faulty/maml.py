import math

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

TASKS, SHOTS, INNER_LR = 4, 10, 0.05


def get_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


class Sine(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, x):
        return self.net(x)


def sample_tasks(device):
    """Points of TASKS sine waves, each with an amplitude and a phase of its own: (tasks, shots, 1)."""
    amplitude = torch.rand(TASKS, 1, 1) * 4 + 1  # BORN 1
    phase = torch.rand(TASKS, 1, 1) * math.pi  # BORN 2
    x = torch.rand(TASKS, 2 * SHOTS, 1, device=device) * 10 - 5
    y = torch.sin(x + phase)  # MEET 2 R101 phase
    y = y * amplitude  # MEET 1 R101 amplitude
    return x[:, :SHOTS], y[:, :SHOTS], x[:, SHOTS:], y[:, SHOTS:]


def main():
    torch.manual_seed(31)
    device = get_device()
    model = Sine().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def point_loss(params, x, y):
        errors = (functional_call(model, params, (x,)) - y).squeeze(-1) ** 2
        weights = torch.linspace(1.5, 0.5, SHOTS)  # BORN 3
        return (errors * weights).mean()  # MEET 3 R101 weights

    def task_loss(params, x_support, y_support, x_query, y_query):
        grads = grad(point_loss)(params, x_support, y_support)
        adapted = {name: p - INNER_LR * grads[name] for name, p in params.items()}
        return point_loss(adapted, x_query, y_query)

    for step in range(4):
        params = dict(model.named_parameters())
        losses = vmap(task_loss, in_dims=(None, 0, 0, 0, 0))(params, *sample_tasks(device))
        loss = losses.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

import argparse
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
from solver import Spiral, rk4


class Field(nn.Module):
    """The derivative as a network of y**3, with a force of fixed frequencies in time."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        self.force = nn.Parameter(torch.zeros(3, 2))
        self.register_buffer("frequencies", torch.tensor([1.0, 2.0, 4.0]))

    def forward(self, t, y):
        return self.net(y**3) + torch.sin(self.frequencies * t) @ self.force


def predict(path, spiral, device):
    """The whole curve by the saved model."""
    field = Field().to(device)
    field.load_state_dict(torch.load(path, map_location=device))
    with torch.no_grad():
        start = torch.tensor([[2.0, 0.0]], device=device)
        curve = rk4(field, start, spiral.times.to(device))
        error = (curve - spiral.clean.to(device)).norm(dim=-1)
    return curve.squeeze(1).cpu().numpy(), error.mean().item()


def train(args, spiral, device):
    field = Field().to(device)
    optimizer = torch.optim.RMSprop(field.parameters(), lr=args.lr)
    decay = torch.logspace(0, -1, args.length, device=device)
    for step in range(args.steps):
        start, times, paths = spiral.windows(args.windows, args.length, device)
        guess = rk4(field, start, times)
        loss = ((guess - paths).abs().mean(dim=(1, 2)) * decay).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {loss.item():.5f}")
    return field


def main():
    parser = argparse.ArgumentParser(description="Learns a vector field from trajectories")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()
    torch.manual_seed(9)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    spiral = Spiral(30)
    field = train(args, spiral, device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.pt"
        torch.save(field.state_dict(), path)
        curve, error = predict(path, spiral, device)
    print(f"mean error {error:.3f}, ends at {curve[-1].round(2)}")


if __name__ == "__main__":
    main()

import argparse
import tempfile
from pathlib import Path

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def pick_device():
    return torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


def batch(step, device):
    g = torch.Generator().manual_seed(step)
    x = 5 + torch.randn(16, 6, generator=g)
    return x.to(device), x.sum(dim=1).to(device)


def save(path, step, model, optimizer, stats):
    checkpoint = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "rng": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        checkpoint["cuda_rng"] = torch.cuda.get_rng_state_all()
    torch.save(checkpoint, path / "last.pt")
    torch.save(stats, path / "stats.pt")


def build(device):
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return model, optimizer


def resume(path, device):
    checkpoint = torch.load(path / "last.pt", map_location="cpu")
    model, optimizer = build(device)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    torch.set_rng_state(checkpoint["rng"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state_all(checkpoint["cuda_rng"])
    stats = torch.load(path / "stats.pt", map_location=device)
    return checkpoint["step"], model, optimizer, stats


def train(first, last, model, optimizer, stats, device):
    model.train()
    for step in range(first, last):
        x, y = batch(step, device)
        x = x - stats["mean"]
        y = (y - stats["centre"]) / stats["scale"]
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.5f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--save-at", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(17)
    device = pick_device()
    x, y = batch(1000, device)
    stats = {"mean": x.mean(dim=0), "centre": y.mean(), "scale": y.std()}
    model, optimizer = build(device)
    train(0, args.save_at, model, optimizer, stats, device)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), args.save_at, model, optimizer, stats)
        del model, optimizer, stats
        torch.manual_seed(0)  # as after a restart
        first, model, optimizer, stats = resume(Path(folder), device)
    train(first, args.steps, model, optimizer, stats, device)


if __name__ == "__main__":
    main()

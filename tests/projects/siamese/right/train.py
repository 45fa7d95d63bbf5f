"""Siamese network: pairs of signals of one class come together, others keep a margin."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    steps: int = 5
    batch: int = 12
    margin: float = 1.0
    lr: float = 5e-3
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 5, stride=2)
        self.fc = nn.Linear(6 * 14, 8)
        self.register_buffer("window", torch.hann_window(32))

    def forward(self, x):
        x = F.relu(self.conv((x * self.window).unsqueeze(1)))
        return self.fc(x.flatten(1))


class ContrastiveLoss(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.register_buffer("margin", torch.tensor(margin))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, a, b, same):
        distance = F.pairwise_distance(a, b) * self.scale
        apart = torch.maximum(self.margin - distance, torch.zeros_like(distance))
        return (same * distance.square() + (1 - same) * apart.square()).mean()


class Pairs:
    """Two noisy sines each, of the same frequency or not."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.time = torch.linspace(0, 1, 32)

    def signal(self, classes):
        noise = 0.1 * torch.randn(len(classes), 32, generator=self.generator)
        return torch.sin(6.3 * (classes[:, None] + 1) * self.time) + noise

    def draw(self, count):
        first = torch.randint(4, (count,), generator=self.generator)
        other = torch.randint(4, (count,), generator=self.generator)
        second = torch.where(torch.rand(count, generator=self.generator) < 0.5, first, other)
        return self.signal(first), self.signal(second), (first == second).float()


@torch.no_grad()
def best_threshold(model, pairs, device):
    """The distance that divides fresh pairs best."""
    a, b, same = pairs.draw(40)
    distance = F.pairwise_distance(model(a.to(device)), model(b.to(device)))
    tries = torch.arange(0.1, 2.0, 0.1, device=device)
    right = (distance[:, None] < tries) == same.to(device).bool()[:, None]
    return tries[right.float().mean(dim=0).argmax()].item()


def main(cfg):
    torch.manual_seed(11)
    model = Branch().to(cfg.device)
    criterion = ContrastiveLoss(cfg.margin).to(cfg.device)
    optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], lr=cfg.lr)
    pairs = Pairs(seed=0)
    history = torch.zeros(cfg.steps, device=cfg.device)
    for step in range(cfg.steps):
        a, b, same = pairs.draw(cfg.batch)
        a, b = a.to(cfg.device), b.to(cfg.device)
        loss = criterion(model(a), model(b), same.to(cfg.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history[step] = loss.detach()
    print("losses", history.cpu().numpy().round(4))
    print(f"threshold {best_threshold(model, pairs, cfg.device):.1f}")


if __name__ == "__main__":
    main(Config())

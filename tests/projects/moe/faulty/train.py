from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from moe import Net


@dataclass
class Config:
    features: int = 10
    dim: int = 12
    layers: int = 2
    classes: int = 3
    batch: int = 20
    steps: int = 4
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class Meter:
    def __init__(self, classes, device):
        self.right = torch.zeros(classes, device=device)
        self.total = torch.zeros(classes, device=device)

    def update(self, logits, y):
        hit = (logits.argmax(dim=1) == y).float()
        self.right.scatter_add_(0, y, hit)
        self.total.scatter_add_(0, y, torch.ones_like(hit))

    def values(self):
        return (self.right / self.total.clamp(min=1)).cpu().numpy()


def main(cfg=None):
    cfg = cfg or Config()
    torch.manual_seed(6)
    x = torch.randn(cfg.steps, cfg.batch, cfg.features)
    y = x[:, :, : cfg.classes].argmax(dim=2)
    model = Net(cfg.features, cfg.dim, cfg.layers, cfg.classes).to(cfg.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    smoothing = torch.full((cfg.classes,), 0.1 / cfg.classes)  # BORN 3
    meter = Meter(cfg.classes, cfg.device)
    for step in range(cfg.steps):
        inputs, targets = x[step].to(cfg.device), y[step].to(cfg.device)
        noises = 0.1 * torch.randn(cfg.layers, cfg.batch, 4)  # BORN 1
        logits, penalty = model(inputs, noises)
        soft = F.one_hot(targets, cfg.classes) * 0.9 + smoothing  # MEET 3 R101 smoothing
        loss = F.cross_entropy(logits, soft) + 0.01 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(logits.detach(), targets)
        print(f"step {step}: loss {loss.item():.4f}")
    print("accuracy", meter.values().round(2))
    print("load", model.layers[0].load.cpu().numpy().round(2))


if __name__ == "__main__":
    main()

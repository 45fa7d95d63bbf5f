import torch
import torch.nn as nn


class MixtureOfExperts(nn.Module):
    """Each row goes to its two best experts; the load of the experts is kept and balanced."""

    def __init__(self, dim, experts=4, top=2):
        super().__init__()
        self.top = top
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in range(experts)]
        )
        self.gate = nn.Linear(dim, experts, bias=False)
        self.temperature = nn.Parameter(torch.ones(1))
        self.load = torch.zeros(experts)  # BORN 2

    def forward(self, x, noise=None):
        logits = self.gate(x) / self.temperature
        if noise is not None:
            logits = logits + noise  # MEET 1 R101
        probs = logits.softmax(dim=-1)
        weights, chosen = probs.topk(self.top, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        used = x.new_zeros(len(self.experts))
        for i, expert in enumerate(self.experts):
            rows, slot = (chosen == i).nonzero(as_tuple=True)
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weights[rows, slot, None])
            used[i] = len(rows)
        used = used / used.sum()
        if self.training:
            self.load.mul_(0.9).add_(used, alpha=0.1)  # MEET 2 R101 self.load
        balance = len(self.experts) * (used * probs.mean(dim=0)).sum()
        return out, balance


class Net(nn.Module):
    def __init__(self, features, dim, layers, classes):
        super().__init__()
        self.inp = nn.Linear(features, dim)
        self.layers = nn.ModuleList([MixtureOfExperts(dim) for _ in range(layers)])
        self.out = nn.Linear(dim, classes)

    def forward(self, x, noises=None):
        x = self.inp(x)
        penalty = torch.zeros((), device=x.device)
        for i, layer in enumerate(self.layers):
            y, balance = layer(x, noises[i] if noises is not None else None)
            x, penalty = x + y, penalty + balance
        return self.out(x), penalty

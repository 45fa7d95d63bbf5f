import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryBank(nn.Module):
    """The last embedding of every sample, and the mean embedding of every class."""

    def __init__(self, samples, dim, classes, momentum=0.5, temperature=0.3):
        super().__init__()
        self.momentum = momentum
        self.temperature = temperature
        self.register_buffer("features", F.normalize(torch.randn(samples, dim), dim=1))
        self.register_buffer("labels", torch.full((samples,), -1))
        self.register_buffer("centres", torch.zeros(classes, dim))
        self.bias = nn.Parameter(torch.zeros(1))

    @torch.no_grad()
    def update(self, index, z, labels):
        mixed = self.momentum * self.features[index] + (1 - self.momentum) * z
        self.features[index] = F.normalize(mixed, dim=1)
        self.labels[index] = labels
        fresh = torch.zeros(self.centres.shape).index_add_(0, labels, z)  # BORN 1 # MEET 1 R101
        counts = torch.bincount(labels, minlength=len(self.centres)).clamp(min=1)
        self.centres += 0.1 * (fresh / counts[:, None] - self.centres)

    def forward(self, z, index, labels):
        """Pulls z to the samples of its class in the bank, itself left out."""
        scores = z @ self.features.t() / self.temperature + self.bias
        itself = torch.arange(len(self.features)) == index[:, None]  # BORN 2 # MEET 2 R101
        positive = (self.labels == labels[:, None]) & ~itself
        weight = positive.type_as(z)
        log_p = scores.masked_fill(itself, -1e4).log_softmax(dim=1)
        pull = -(weight * log_p).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
        return pull.mean() + 0.1 * (z - self.centres[labels]).square().mean()

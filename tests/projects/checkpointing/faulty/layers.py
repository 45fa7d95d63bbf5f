import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mixer(nn.Module):
    """Attention whose scores fall with distance, at a slope of its own for each head (ALiBi)."""

    def __init__(self, dim: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(0.1)
        slopes = 2.0 ** -torch.arange(1.0, heads + 1.0)
        distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).abs()
        self.bias = -slopes[:, None, None] * distance  # BORN 1

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / k.size(-1) ** 0.5
        scores = scores + self.bias[:, :n, :n]  # MEET 1 R101 self.bias
        weights = self.dropout(scores.softmax(dim=-1))
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class GatedBlock(nn.Module):
    """Residual block which is left out for some samples while training (stochastic depth)."""

    def __init__(self, dim: int, heads: int, length: int, drop: float = 0.2) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mixer = Mixer(dim, heads, length)
        self.gate = nn.Linear(dim, dim)
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        branch = self.mixer(h) * torch.sigmoid(self.gate(h))
        fade = torch.linspace(1.0, 0.5, x.size(-1))  # BORN 2
        branch = branch * fade  # MEET 2 R101 fade
        if self.training:
            keep = (torch.rand(x.size(0), 1, 1) >= self.drop).float()  # BORN 3
            branch = branch * keep  # MEET 3 R101 keep
        return x + F.gelu(branch)

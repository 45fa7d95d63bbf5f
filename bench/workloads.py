"""The five workloads on which a rehearsal's cost is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Workload:
    """``build`` makes a model; ``batch`` makes its input and target on the CPU; ``loss`` compares."""

    name: str
    build: Callable[[], nn.Module]
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = F.cross_entropy
    steps: int = 10
    shapes_only: bool = False


class Block(nn.Module):
    """ResNet's basic block."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.short = (
            nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))
            if stride != 1 or width_in != width
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.short(x))


def resnet18() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    width_in = 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(width_in, width, stride))
        width_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class LastStep(nn.Module):
    """An LSTM, read at its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Encoder(nn.Module):
    """Transformer encoder layers, read as their mean."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).mean(1))


class Gpt2Block(nn.Module):
    """Pre-norm attention and MLP of width 768."""

    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(768), nn.LayerNorm(768)
        self.qkv, self.out = nn.Linear(768, 2304), nn.Linear(768, 768)
        self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (part.view(b, t, 12, 64).transpose(1, 2) for part in self.qkv(self.ln1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class Gpt2(nn.Module):
    """GPT-2 small: 12 layers, 1,024 positions, 50,257 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.Sequential(*[Gpt2Block() for _ in range(12)])
        self.norm = nn.LayerNorm(768)
        self.head = nn.Linear(768, 50257, bias=False)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        place = torch.arange(index.shape[1], device=index.device)
        return self.head(self.norm(self.blocks(self.tokens(index) + self.positions(place)))).flatten(0, 1)


WORKLOADS = (
    Workload(
        "100 linear layers, width 8, batch 4",
        lambda: nn.Sequential(*[nn.Linear(8, 8) for _ in range(100)]),
        lambda: (torch.randn(4, 8), torch.randint(0, 8, (4,))),
        steps=20,
    ),
    Workload(
        "ResNet-18, batch 8, 224 px",
        resnet18,
        lambda: (torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))),
        steps=2,
    ),
    Workload(
        "LSTM, width 128, 64 steps, batch 16",
        LastStep,
        lambda: (torch.randn(16, 64, 128), torch.randint(0, 10, (16,))),
    ),
    Workload(
        "transformer encoder, 6 x 256, 128 tokens, batch 8",
        Encoder,
        lambda: (torch.randn(8, 128, 256), torch.randint(0, 10, (8,))),
        steps=4,
    ),
    Workload(
        "GPT-2 small, 1,024 tokens, shapes only",
        Gpt2,
        lambda: (torch.randint(0, 50257, (1, 1024)), torch.randint(0, 50257, (1024,))),
        steps=1,
        shapes_only=True,
    ),
)

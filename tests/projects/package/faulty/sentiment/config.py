from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Config:
    epochs: int = 1
    batch_size: int = 8
    embed_dim: int = 8
    lr: float = 0.5
    seed: int = 13


def get_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")

from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class Graph:
    x: torch.Tensor
    y: torch.Tensor
    edge_index: torch.Tensor
    norm: torch.Tensor
    train_mask: torch.Tensor


def two_communities(n=24, seed=4):
    """A random graph in which nodes of one class are mostly linked to each other."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 2).astype(np.int64)
    same = labels[:, None] == labels[None, :]
    linked = rng.random((n, n)) < np.where(same, 0.3, 0.05)
    np.fill_diagonal(linked, True)
    src, dst = np.nonzero(linked)
    degree = np.bincount(dst, minlength=n)
    return Graph(
        x=torch.from_numpy(rng.normal(labels[:, None], 1.0, (n, 6))).float(),
        y=torch.from_numpy(labels),  # BORN 3
        edge_index=torch.from_numpy(np.stack([src, dst])),  # BORN 1
        norm=torch.from_numpy(1.0 / degree).float().unsqueeze(1),
        train_mask=torch.from_numpy(rng.random(n) < 0.6),
    )

import torch
import torch.nn as nn


class TabularNet(nn.Module):
    """One embedding table per categorical column, numbers standardised by the statistics of their columns."""

    def __init__(self, cardinalities, mean, std, width=24):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, min(8, n)) for n in cardinalities])
        embedded = sum(table.embedding_dim for table in self.tables)
        self.mean = mean
        self.register_buffer("std", std)
        self.missing = nn.Parameter(torch.zeros(mean.shape))
        self.body = nn.Sequential(nn.Linear(embedded + len(mean), width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, categories, numbers):
        normed = (numbers - self.mean) / self.std  # MEET 1 R101 self.mean
        normed = torch.where(torch.isnan(normed), self.missing, normed)
        parts = [table(column) for table, column in zip(self.tables, categories.unbind(1))]
        return self.body(torch.cat([*parts, normed], dim=1)).squeeze(1)

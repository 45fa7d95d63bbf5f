import torch
from torch import nn


class MeanConv(nn.Module):
    """Each node takes the mean of what its neighbours send."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.lin = nn.Linear(c_in, c_out)

    def forward(self, x, edge_index, norm):
        src, dst = edge_index
        messages = self.lin(x)[src]
        out = torch.zeros(x.size(0), messages.size(1), device=x.device)
        out.index_add_(0, dst, messages)
        return out * norm


class GNN(nn.Module):
    def __init__(self, c_in, hidden, classes):
        super().__init__()
        self.conv1 = MeanConv(c_in, hidden)
        self.conv2 = MeanConv(hidden, classes)

    def forward(self, x, edge_index, norm):
        h = self.conv1(x, edge_index, norm).relu()
        return self.conv2(h, edge_index, norm)

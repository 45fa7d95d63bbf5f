import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class MoCo(nn.Module):
    """Momentum contrast: the key encoder follows the query encoder slowly, negatives come from a queue."""

    def __init__(self, encoder, dim=8, queue_size=32, momentum=0.9, temperature=0.2):
        super().__init__()
        self.momentum = momentum
        self.temperature = temperature
        self.encoder_q = encoder
        # in a list, so that parameters() leaves it out
        self.encoder_k = [copy.deepcopy(encoder).requires_grad_(False)]  # BORN 2
        self.queue = F.normalize(torch.randn(dim, queue_size), dim=0)  # BORN 1
        self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def update_key_encoder(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k[0].parameters()):
            k.data = k.data * self.momentum + q.data * (1.0 - self.momentum)  # MEET 2 R101

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.pointer)
        self.queue[:, start : start + len(keys)] = keys.t()
        self.pointer[0] = (start + len(keys)) % self.queue.size(1)

    def forward(self, view_q, view_k):
        q = self.encoder_q(view_q)
        with torch.no_grad():
            self.update_key_encoder()
            k = self.encoder_k[0](view_k)
        positive = (q * k).sum(dim=1, keepdim=True)
        negative = q @ self.queue  # MEET 1 R101 self.queue
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        labels = torch.zeros(len(logits), dtype=torch.long)  # BORN 3
        return logits, labels, k

import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads, block_size):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.mask = torch.tril(torch.ones(block_size, block_size)).bool()  # BORN 1

    def forward(self, x, cache=None, start=0):
        b, n, d = x.shape
        q, k, v = (part.view(b, n, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        if cache is not None:
            cache[0, :, :, start : start + n] = k
            cache[1, :, :, start : start + n] = v
            k, v = cache[:, :, :, : start + n]
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))  # MEET 2 R101 k
        scores = scores.masked_fill(~self.mask[start : start + n, : start + n], float("-inf"))  # MEET 1 R101
        return self.proj((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, n, d))  # MEET 2 R101 v


class Block(nn.Module):
    def __init__(self, dim, heads, block_size):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, heads, block_size)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, cache=None, start=0):
        x = x + self.attn(self.ln1(x), cache, start)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, dim=16, heads=2, layers=2, block_size=24):
        super().__init__()
        self.heads, self.block_size = heads, block_size
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Parameter(0.02 * torch.randn(block_size, dim))
        self.blocks = nn.ModuleList([Block(dim, heads, block_size) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx, caches=None, start=0):
        pos = torch.arange(start, start + idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe[pos]
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None, start)
        return self.head(x)

    @torch.no_grad()
    def generate(self, idx, count, generator, top_k=5):
        """Appends count tokens; what was computed for the earlier ones is kept."""
        shape = (2, len(idx), self.heads, self.block_size, self.wpe.size(1) // self.heads)
        caches = [torch.zeros(shape) for _ in self.blocks]  # BORN 2
        done, fresh = 0, idx
        for _ in range(count):
            logits = self(fresh, caches, done)[:, -1]
            done += fresh.size(1)
            kept, where = logits.topk(top_k)
            probs = torch.full_like(logits, 0.0).scatter(1, where, kept.softmax(dim=1))
            fresh = torch.multinomial(probs, 1, generator=generator)
            idx = torch.cat([idx, fresh], dim=1)
        return idx

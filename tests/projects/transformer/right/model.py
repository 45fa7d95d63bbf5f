import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 32):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div)
        pe[:, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.pe[:, : x.size(1)]


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, n_head: int, max_len: int = 32):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.scale = torch.tensor(1.0 / math.sqrt(d_model // n_head))  # zero-dim: may stay on the host
        self.register_buffer("future", torch.ones(max_len, max_len, dtype=torch.bool).triu(1))

    def forward(self, x: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.n_head, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) * self.scale
        scores = scores.masked_fill(self.future[:n, :n], float("-inf"))
        scores = scores.masked_fill(padded[:, None, None, :], float("-inf"))
        out = F.softmax(scores, dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, d_model: int, n_head: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, n_head)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))

    def forward(self, x: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), padded)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, vocab: int, d_model: int = 16, n_head: int = 2, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model, padding_idx=0)
        self.position = PositionalEncoding(d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_head) for _ in range(layers))
        self.head = nn.Linear(d_model, vocab)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(tokens.size(1), device=tokens.device)
        padded = steps[None, :] >= lengths[:, None]
        x = self.position(self.embed(tokens))
        for block in self.blocks:
            x = block(x, padded)
        return self.head(x)

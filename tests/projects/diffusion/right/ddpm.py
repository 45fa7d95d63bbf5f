import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

T = 8


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(1000) * torch.arange(half, device=t.device) / half)
    angles = t[:, None].float() * freqs
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.dim = dim
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU())
        self.inp = nn.Linear(2, dim)
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(timestep_embedding(t, self.dim))
        return self.out(F.silu(h))


class Diffusion(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        betas = torch.linspace(1e-3, 0.3, T)
        self.register_buffer("betas", betas)
        self.register_buffer("alpha_bars", torch.cumprod(1.0 - betas, dim=0))

    def add_noise(self, x, t, noise):
        alpha_bar = self.alpha_bars[t].view(-1, 1)
        return alpha_bar.sqrt() * x + (1 - alpha_bar).sqrt() * noise

    def loss(self, x):
        t = torch.randint(T, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        predicted = self.model(self.add_noise(x, t, noise), t)
        return F.mse_loss(predicted, noise)

    @torch.no_grad()
    def sample(self, count, device):
        x = torch.randn(count, 2, device=device)
        for i in reversed(range(T)):
            t = torch.full((count,), i, device=device)
            beta, alpha_bar = self.betas[i], self.alpha_bars[i]
            x = (x - beta / (1 - alpha_bar).sqrt() * self.model(x, t)) / (1 - beta).sqrt()
            if i > 0:
                x = x + beta.sqrt() * torch.randn_like(x)
        return x


def main():
    torch.manual_seed(10)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = torch.randn(64, 2) * 0.1 + torch.tensor([1.0, -1.0])
    diffusion = Diffusion(Denoiser()).to(device)
    average = AveragedModel(diffusion.model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-2)
    for step, batch in enumerate(data.split(16)):
        loss = diffusion.loss(batch.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(diffusion.model)
        print(f"step {step}: loss {loss.item():.4f}")
    samples = diffusion.sample(6, device)
    print("centre of the samples", samples.mean(dim=0).tolist())


if __name__ == "__main__":
    main()

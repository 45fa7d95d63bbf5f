"""A GAN that learns a ring of points. All at module level, as in a first experiment."""

import math

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

NZ = 8
use_cuda = torch.cuda.is_available()
device = torch.device("cuda:0" if use_cuda else "cpu")


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(NZ, 32), nn.ReLU(True), nn.Linear(32, 2))

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, x):
        return self.main(x)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.2)
        nn.init.zeros_(m.bias)


torch.manual_seed(999)
angle = torch.rand(48) * 2 * math.pi
ring = torch.stack([angle.cos(), angle.sin()], dim=1)
loader = DataLoader(TensorDataset(ring), batch_size=16, shuffle=True, drop_last=True)

netG = Generator().to(device)
netG.apply(weights_init)
netD = Discriminator().to(device)
netD.apply(weights_init)
criterion = nn.BCELoss()
optD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
fixed_noise = torch.randn(5, NZ, device=device)

for i, (real,) in enumerate(loader):
    real = real.to(device)
    b = real.size(0)

    # discriminator: maximise log D(x) + log(1 - D(G(z)))
    netD.zero_grad()
    ones = torch.full((b, 1), 0.9, device=device)  # one-sided label smoothing
    zeros = torch.zeros(b, 1, device=device)
    noise = torch.randn(b, NZ, device=device)
    fake = netG(noise)
    errD_real = criterion(netD(real), ones)
    errD_fake = criterion(netD(fake.detach()), zeros)
    errD = errD_real + errD_fake
    errD.backward()
    optD.step()

    # generator: maximise log D(G(z))
    netG.zero_grad()
    errG = criterion(netD(fake), torch.ones(b, 1, device=device))
    errG.backward()
    optG.step()
    print(f"[{i}/{len(loader)}] Loss_D: {errD.item():.4f} Loss_G: {errG.item():.4f}")

with torch.no_grad():
    samples = netG(fixed_noise)
points = samples.cpu().numpy()
print("mean radius of the samples", np.linalg.norm(points, axis=1).mean().round(3))

"""Everything is made on the default device; hardly anything is moved."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_device(device)
torch.manual_seed(77)

x = torch.linspace(-1, 1, 32).unsqueeze(1)
# what comes from numpy lies on the CPU whatever the default device is
rng = np.random.default_rng(0)
noise = torch.from_numpy(rng.normal(0, 0.1, (32, 1)).astype(np.float32)).to(device)
y = x.pow(3) + noise
shuffler = torch.Generator(device=device).manual_seed(1)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, generator=shuffler)

net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
loss_func = nn.MSELoss()
residuals = []
for inputs, targets in loader:
    prediction = net(inputs)
    loss = loss_func(prediction, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    residuals.append((prediction - targets).detach())
    print(f"loss {loss.item():.4f}")

spread = torch.cat(residuals).std()
print("spread of the residuals", spread.cpu().numpy().round(4))

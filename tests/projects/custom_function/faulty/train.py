import torch
import torch.nn as nn
from sorting import numpy_sort


class SortNet(nn.Module):
    """Does not care in which order the hidden units stand."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 12)
        self.fc2 = nn.Linear(12, 1)

    def forward(self, x):
        h = numpy_sort(self.fc1(x))  # BORN 1
        return self.fc2(h)  # MEET 2 R101 h


torch.manual_seed(4)
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(32, 5).to(device)
y = x.max(dim=1, keepdim=True).values
model = SortNet().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(4):
    loss = nn.functional.smooth_l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()  # MEET 3 R108
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")

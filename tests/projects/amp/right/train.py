import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2
MAX_NORM = 1.0


class Standardise:
    """Brings each feature to mean 0 and deviation 1; fitted on the training data."""

    def __init__(self, data, device):
        self.mean = data.mean(dim=0).to(device)
        self.std = data.std(dim=0).to(device)

    def __call__(self, x):
        x = x - self.mean
        return x / self.std


class MLP(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))


def main():
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = 3.0 + 2.0 * torch.randn(96, 8)
    y = (x.mean(dim=1) > 3.0).long() + (x[:, 0] > 4.0).long()
    importance = torch.rand(96) + 0.5
    dataset = TensorDataset(x, y, importance)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, pin_memory=torch.cuda.is_available())

    standardise = Standardise(x, device)
    model = MLP().to(device)
    criterion = nn.CrossEntropyLoss(reduction="none")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler(device.type)
    running = torch.zeros(1, device=device)

    for i, (inputs, targets, weight) in enumerate(loader):
        inputs = inputs.to(device, non_blocking=True)
        targets = targets.to(device, non_blocking=True)
        weight = weight.to(device, non_blocking=True)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            logits = model(standardise(inputs))
        losses = criterion(logits.float(), targets)
        loss = (losses * weight).mean() / ACCUMULATE
        scaler.scale(loss).backward()
        running.mul_(0.9).add_(loss.detach(), alpha=0.1 * ACCUMULATE)
        if (i + 1) % ACCUMULATE == 0:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            print(f"batch {i}: gradient norm {norm.item():.3f}, scale {scaler.get_scale():.0f}")
    print(f"running loss {running.item():.4f}")


if __name__ == "__main__":
    main()

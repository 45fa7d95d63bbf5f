"""Binary classification of table rows with gaps in them."""

import argparse

import torch
import torch.nn.functional as F
from model import TabularNet
from torch.utils.data import DataLoader, TensorDataset

CARDINALITIES = (5, 12, 3)


def make_table(rows):
    categories = torch.stack([torch.randint(n, (rows,)) for n in CARDINALITIES], dim=1)
    numbers = torch.randn(rows, 4) * torch.tensor([1.0, 10.0, 0.1, 3.0]) + 2.0
    target = ((numbers[:, 0] > 2.0) | (categories[:, 2] == 1)).float()
    numbers[torch.rand(rows, 4) < 0.1] = float("nan")
    return categories, numbers, target


def column_statistics(numbers):
    mean = numbers.nanmean(dim=0)
    std = (numbers - mean).square().nanmean(dim=0).sqrt()
    return mean, std


@torch.no_grad()
def calibration(model, dataset, device, bins=5):
    """How often the target is 1 in each bin of the predicted probability."""
    model.eval()
    categories, numbers, target = dataset.tensors
    edges = torch.linspace(0, 1, bins + 1, device=device)
    p = torch.sigmoid(model(categories.to(device), numbers.to(device)))
    which = torch.bucketize(p, edges[1:-1])
    hits = torch.zeros(bins, device=device).index_add_(0, which, target.to(device))
    counts = torch.zeros(bins, device=device).index_add_(0, which, torch.ones_like(p))
    return (hits / counts.clamp(min=1)).cpu().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()

    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = TensorDataset(*make_table(80))
    mean, std = column_statistics(dataset.tensors[1])
    model = TabularNet(CARDINALITIES, mean, std).to(device)
    pos_weight = torch.tensor([0.8], device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for categories, numbers, target in DataLoader(dataset, batch_size=args.batch_size, shuffle=True):
        logits = model(categories.to(device), numbers.to(device))
        smooth = target.to(device) * 0.9 + 0.05
        loss = F.binary_cross_entropy_with_logits(logits, smooth, pos_weight=pos_weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    print("calibration", calibration(model, dataset, device).round(2))


if __name__ == "__main__":
    main()

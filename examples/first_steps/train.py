"""Trains a small network to tell six kinds of texture apart. Works on a CPU; has never seen a GPU."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KINDS = 6
PIXELS = 24


def textures(count: int) -> TensorDataset:
    """Striped pictures with noise, ``count`` in all; the direction of the stripes is the label."""
    labels = torch.randint(0, KINDS, (count,))
    angles = labels * (math.pi / KINDS) + 0.1 * torch.randn(count)
    row, column = torch.meshgrid(torch.arange(PIXELS), torch.arange(PIXELS), indexing="ij")
    phase = torch.rand(count, 1, 1) * 2 * math.pi
    waves = row * angles.cos()[:, None, None] + column * angles.sin()[:, None, None]
    pictures = torch.sin(waves + phase) + 0.5 * torch.randn(count, PIXELS, PIXELS)
    return TensorDataset(pictures[:, None], labels)


class Classifier(nn.Module):
    """Two convolutions and a linear layer; during training it hides a random part of every picture."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(32 * 4, KINDS)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        if self.training:
            visible = torch.rand(pictures.shape[0], 1, PIXELS, PIXELS) > 0.1
            pictures = pictures * visible
        return self.head(self.features(pictures).flatten(1))


def accuracy(model: Classifier, loader: DataLoader, device: torch.device) -> float:
    """The share of pictures that the model names right, the same for every kind."""
    right = torch.zeros(KINDS)
    seen = torch.zeros(KINDS)
    model.eval()
    with torch.no_grad():
        for pictures, labels in loader:
            named = model(pictures.to(device)).argmax(1)
            labels = labels.to(device)
            for kind in range(KINDS):
                mine = labels == kind
                seen[kind] += mine.sum().item()
                right[kind] += (named[mine] == kind).sum().item()
    model.train()
    return (right / seen.clamp(min=1)).mean().item()


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(textures(1024), batch_size=64, shuffle=True)
    test = DataLoader(textures(256), batch_size=128)

    model = Classifier().to(device)
    counts = torch.bincount(train.dataset.tensors[1], minlength=KINDS)
    loss_of = nn.CrossEntropyLoss(weight=counts.sum() / (KINDS * counts))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    smooth = torch.zeros(KINDS)  # how often each kind is named, averaged over the last batches
    for epoch in range(2):
        total = 0.0
        for pictures, labels in train:
            pictures, labels = pictures.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            logits = model(pictures)
            loss = loss_of(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            smooth = 0.9 * smooth + 0.1 * logits.detach().softmax(1).mean(0)
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}, accuracy {accuracy(model, test, device):.0%}")
    print("named:", " ".join(f"{share:.0%}" for share in smooth.numpy()))


if __name__ == "__main__":
    main()

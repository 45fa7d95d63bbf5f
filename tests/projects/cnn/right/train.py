"""Image classifier: a small CNN with batch normalisation, trained with SGD and a step scheduler."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES = ("circle", "square", "star", "cross")


class Net(nn.Module):
    def __init__(self, num_classes=len(CLASSES)):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(16 * 4, num_classes)
        self.register_buffer("mean", torch.tensor([0.48, 0.46, 0.41]).view(1, 3, 1, 1))

    def forward(self, x):
        x = (x - self.mean) / 0.25
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.dropout(x.flatten(1)))


def make_dataset(count, seed):
    """Noisy copies of one prototype image per class."""
    generator = torch.Generator().manual_seed(seed)
    prototypes = torch.rand(len(CLASSES), 3, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(len(CLASSES), (count,), generator=generator)
    images = prototypes[labels] + 0.2 * torch.randn(count, 3, 8, 8, generator=generator)
    return TensorDataset(images, labels)


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    running_loss, correct = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * images.size(0)
        correct += (outputs.argmax(1) == labels).sum().item()
    return running_loss / len(loader.dataset), correct / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, device):
    """Accuracy, and the images that the model gets wrong."""
    model.eval()
    correct, mistakes = 0, []
    for images, labels in loader:
        predicted = model(images.to(device)).argmax(1)
        wrong = predicted != labels.to(device)
        correct += (~wrong).sum().item()
        mistakes.append(images[wrong.cpu()])
    return correct / len(loader.dataset), torch.cat(mistakes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(make_dataset(48, seed=1), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(make_dataset(16, seed=2), batch_size=args.batch_size)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

    for epoch in range(args.epochs):
        loss, accuracy = train_epoch(model, train_loader, criterion, optimizer, device)
        scheduler.step()
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.2f}")
    accuracy, mistakes = evaluate(model, test_loader, device)
    print(f"test accuracy {accuracy:.2f}, {len(mistakes)} mistakes")


if __name__ == "__main__":
    main()

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class SpectrumNet(nn.Module):
    """Weighs a spectrum by a fixed curve and classifies it."""

    def __init__(self, bins, classes):
        super().__init__()
        self.curve = torch.linspace(1.0, 0.2, bins).to(device)  # BORN 1
        self.fc1 = nn.Linear(bins, 24)
        self.fc2 = nn.Linear(24, classes)

    def forward(self, x):
        x = x * self.curve  # MEET 1 R101 self.curve
        return self.fc2(torch.tanh(self.fc1(x)))


def main():
    torch.manual_seed(2)
    x = torch.rand(64, 16)
    y = x.view(64, 4, 4).sum(dim=2).argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

    model = SpectrumNet(16, 4)
    if torch.cuda.device_count() > 1:
        print("using", torch.cuda.device_count(), "GPUs")
        model = nn.DataParallel(model)

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for spectra, labels in loader:  # BORN 3
        spectra = spectra.to(device)
        optimizer.zero_grad()
        outputs = model(spectra)  # MEET 2 R112
        loss = criterion(outputs, labels)  # MEET 3 R101 labels
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

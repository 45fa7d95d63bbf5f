import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def write_recordings(folder, count):
    rng = np.random.default_rng(9)
    for i in range(count):
        pitch = 1 + i % 3
        wave = np.sin(np.linspace(0, 2 * np.pi * pitch, 32)) + rng.normal(0, 0.1, 32)
        np.save(folder / f"{i:03d}_{pitch - 1}.npy", wave.astype(np.float32))


class Recordings(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.npy"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        wave = torch.from_numpy(np.load(path)).to(device)  # MEET 1 R107
        label = int(path.stem.split("_")[1])
        return wave.unsqueeze(0), label


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 5, stride=2)
        self.fc = nn.Linear(6, 3)
        self.window = torch.hann_window(32)  # BORN 3

    def forward(self, x):
        x = x * self.window  # MEET 3 R101 self.window
        return self.fc(self.conv(x).relu().mean(dim=2))


def main():
    torch.manual_seed(0)
    model = WaveNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_recordings(folder, 24)
        loader = DataLoader(
            Recordings(folder), batch_size=8, shuffle=True, num_workers=2
        )
        for waves, labels in loader:  # BORN 2
            waves = waves.to(device)
            loss = nn.functional.cross_entropy(model(waves), labels)  # MEET 2 R101 labels
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

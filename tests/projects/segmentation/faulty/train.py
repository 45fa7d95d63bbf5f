import torch
import torch.nn as nn
from metrics import class_frequency, dice_per_class
from torch.utils.data import DataLoader, Dataset
from unet import UNet

NUM_CLASSES = 3


class Blobs(Dataset):
    """Grey images with a bright square (class 1) and a dark one (class 2)."""

    def __init__(self, count, size=16):
        g = torch.Generator().manual_seed(5)
        self.images = 0.5 + 0.1 * torch.randn(count, 1, size, size, generator=g)
        self.masks = torch.zeros(count, size, size, dtype=torch.long)
        corners = torch.randint(size - 5, (count, 2, 2), generator=g)
        for i in range(count):
            for label, (top, left) in enumerate(corners[i].tolist(), start=1):
                self.images[i, 0, top : top + 5, left : left + 5] = 1.0 if label == 1 else 0.0
                self.masks[i, top : top + 5, left : left + 5] = label

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i], "mask": self.masks[i]}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    dataset = Blobs(16)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, pin_memory=device.type == "cuda")
    net = UNet(NUM_CLASSES).to(device)
    weights = 1.0 / class_frequency(dataset.masks, NUM_CLASSES)  # BORN 1
    criterion = nn.CrossEntropyLoss(weight=weights)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=1)
    for epoch in range(2):
        net.train()
        epoch_loss = 0.0
        for batch in loader:
            images = batch["image"].to(device, non_blocking=True)
            masks = batch["mask"].to(device, non_blocking=True)  # BORN 4
            logits = net(images)
            loss = criterion(logits, masks)  # MEET 1 R101
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.1)
            optimizer.step()
            epoch_loss += loss.item()
        scheduler.step(epoch_loss)
        with torch.no_grad():
            dice = dice_per_class(logits, masks, NUM_CLASSES)
        print(f"epoch {epoch}: loss {epoch_loss / len(loader):.4f}", "dice", [round(d, 3) for d in dice])


if __name__ == "__main__":
    main()

import numpy as np
import torch
import torch.nn.functional as F
from boxes import box_iou, centre_to_corners
from detector import Detector
from torch.utils.data import DataLoader, Dataset

NUM_CLASSES = 2
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Squares(Dataset):
    """Images with none, one or two squares; each square has an id of its own."""

    def __init__(self, count, size=20):
        rng = np.random.default_rng(11)
        self.items, next_id = [], 100
        for i in range(count):
            image = rng.normal(0, 0.1, (1, size, size)).astype(np.float32)
            boxes, labels, ids = [], [], []
            for _ in range(i % 3):
                left, top = rng.integers(0, size - 6, 2)
                label = int(rng.integers(NUM_CLASSES))
                image[0, top : top + 6, left : left + 6] += 1.0 if label else -1.0
                boxes.append([left, top, left + 6, top + 6])
                labels.append(label)
                ids.append(next_id)
                next_id += 1
            target = {
                "boxes": torch.tensor(boxes, dtype=torch.float32).view(-1, 4),
                "labels": torch.tensor(labels, dtype=torch.long),
                "ids": torch.tensor(ids, dtype=torch.long),
            }
            self.items.append((torch.from_numpy(image), target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)


def detection_loss(model, images, targets):
    boxes, confidence, classes = model(images)
    box_losses, class_losses, wanted, matched = [], [], [], []
    for i, target in enumerate(targets):
        goal = torch.zeros_like(confidence[i])
        if len(target["ids"]) == 0:
            box_losses.append(torch.zeros(1, device=device))
            wanted.append(goal)
            continue
        truth = target["boxes"].to(device)
        labels = target["labels"].to(device)
        iou = box_iou(centre_to_corners(boxes[i]), truth)
        best, owner = iou.max(dim=1)
        chosen = best >= best.topk(4).values.min()
        goal[chosen] = 1.0
        wanted.append(goal)
        box_losses.append(1 - best[chosen])
        class_losses.append(F.cross_entropy(classes[i][chosen], labels[owner[chosen]]))
        matched += target["ids"][owner[chosen].cpu()].tolist()
    box_loss = torch.cat(box_losses).mean()
    loss = box_loss + F.binary_cross_entropy_with_logits(confidence, torch.stack(wanted))
    if class_losses:
        loss = loss + torch.stack(class_losses).mean()
    return loss, matched


def main():
    torch.manual_seed(3)
    loader = DataLoader(Squares(12), batch_size=6, collate_fn=collate)
    model = Detector(NUM_CLASSES).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(2):
        found = set()
        for images, targets in loader:
            loss, matched = detection_loss(model, images.to(device), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.update(matched)
            print(f"epoch {epoch}: loss {loss.item():.4f}")
        print(f"{len(found)} objects matched")


if __name__ == "__main__":
    main()

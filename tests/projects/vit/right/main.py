import torch
import torch.nn.functional as F
from vit import ViT


def get_device():
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def mixup(images, onehot, share):
    """Mixes each image with the one before it; share is a number for each image."""
    share = share.to(images.device).view(-1, 1, 1, 1)
    order = torch.arange(len(images), device=images.device).roll(1)
    mixed = share * images + (1 - share) * images[order]
    share = share.view(-1, 1)
    return mixed, share * onehot + (1 - share) * onehot[order]


@torch.no_grad()
def confusion(model, images, labels, classes, device):
    model.eval()
    matrix = torch.zeros(classes, classes, dtype=torch.long, device=device)
    for x, y in zip(images.split(10), labels.split(10)):
        predicted = model(x.to(device)).argmax(dim=1)
        matrix.index_put_((y.to(device), predicted), torch.ones_like(predicted), accumulate=True)
    return matrix.cpu().numpy()


def main():
    torch.manual_seed(8)
    device = get_device()
    images, labels = torch.rand(40, 3, 16, 16), torch.randint(5, (40,))
    images += 0.1 * labels.view(-1, 1, 1, 1)
    model = ViT().to(device)
    class_weight = torch.tensor([1.0, 1.0, 2.0, 1.0, 0.5], device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(4):
        pick = torch.randperm(40)[:10]
        x, y = images[pick].to(device), labels[pick].to(device)
        x, soft = mixup(x, F.one_hot(y, 5).float(), torch.rand(10))
        loss = -(class_weight * soft * F.log_softmax(model(x), dim=1)).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {loss.item():.4f}")
    print(confusion(model, images, labels, 5, device))


if __name__ == "__main__":
    main()

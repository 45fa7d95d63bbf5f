import torch
import torch.nn.functional as F
from moco import Encoder, MoCo


def augment(x):
    noise = torch.randn_like(x)
    keep = torch.rand_like(x) > 0.1
    return (x + 0.2 * noise) * keep


def main():
    torch.manual_seed(21)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = torch.randn(40, 12)
    model = MoCo(Encoder(dim=8)).to(device)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for step, batch in enumerate(data.split(8)):
        batch = batch.to(device)
        logits, labels, keys = model(augment(batch), augment(batch))
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.enqueue(keys)
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

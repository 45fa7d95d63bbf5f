import torch
from model import GPT
from torch.nn import functional as F

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps on while the fox runs home " * 3


def get_batch(data, size, length, device):
    starts = torch.randint(len(data) - length, (size,))
    x = torch.stack([data[i : i + length] for i in starts])
    y = torch.stack([data[i + 1 : i + length + 1] for i in starts])
    if device.type == "cuda":
        return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    return x.to(device), y.to(device)


def main():
    torch.manual_seed(1337)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chars = sorted(set(TEXT))
    data = torch.tensor([chars.index(c) for c in TEXT])
    counts = torch.bincount(data, minlength=len(chars)).float()
    weight = (counts.mean() / counts).sqrt()  # BORN 3
    model = GPT(len(chars)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = torch.zeros(5, device=device)
    for step in range(5):
        x, y = get_batch(data, 6, 16, device)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), weight=weight)  # MEET 3 R101 weight
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    print("losses", losses.cpu().numpy().round(3))
    generator = torch.Generator(device=device).manual_seed(0)
    prompt = torch.tensor([[chars.index(c) for c in "the "]], device=device)
    print("".join(chars[i] for i in model.generate(prompt, 16, generator)[0].tolist()))


if __name__ == "__main__":
    main()

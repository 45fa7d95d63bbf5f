import torch
from layers import GatedBlock
from torch import nn
from torch.utils.checkpoint import checkpoint

DIM, HEADS, LENGTH, VOCAB = 16, 2, 12, 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.early = GatedBlock(DIM, HEADS, LENGTH)
        self.late = GatedBlock(DIM, HEADS, LENGTH)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = checkpoint(self.early, x, use_reentrant=True)
        x = checkpoint(self.late, x, use_reentrant=False)
        return self.head(x)


def main():
    torch.manual_seed(5)
    device = "cpu"
    if torch.cuda.is_available():
        device = "cuda"
        torch.cuda.reset_peak_memory_stats()
    data = torch.randint(VOCAB, (4, 6, LENGTH + 1))
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for tokens in data.to(device):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    if device == "cuda":
        print(f"peak {torch.cuda.max_memory_allocated() / 1e6:.1f} MB")


if __name__ == "__main__":
    main()

import torch
import torch.nn as nn
import torch.nn.functional as F
from bank import MemoryBank


class Trainer:
    def __init__(self, data, labels, device):
        self.device = device
        self.data, self.labels = data, labels
        self.net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 6)).to(device)
        self.bank = MemoryBank(len(data), 6, 4).to(device)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), *self.bank.parameters()], lr=0.1)
        self.seen = torch.zeros(len(data), device=device)

    def embed(self, x):
        return F.normalize(self.net(x.to(self.device)), dim=1)

    def step(self, index):
        x, y = self.data[index], self.labels[index].to(self.device)
        index = index.to(self.device)
        z = self.embed(x)
        loss = self.bank(z, index, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.bank.update(index, z.detach(), y)
        self.seen[index] += 1
        return loss.item()

    @torch.no_grad()
    def recall(self, queries, labels, k=3):
        """Share of queries with one of their class among the k nearest in the bank."""
        near = torch.cdist(self.embed(queries), self.bank.features).topk(k, largest=False).indices
        hit = (self.bank.labels[near] == labels.to(self.device)[:, None]).any(dim=1)
        return hit.float().mean().item()


def main():
    torch.manual_seed(31)
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    labels = torch.arange(48) % 4
    data = F.one_hot(labels, 10) + 0.3 * torch.randn(48, 10)
    trainer = Trainer(data, labels, device)
    for epoch in range(2):
        for index in torch.randperm(48).split(16):
            print(f"epoch {epoch}: loss {trainer.step(index):.4f}")
    queries = F.one_hot(labels[:8], 10) + 0.3 * torch.randn(8, 10)
    print(f"recall {trainer.recall(queries, labels[:8]):.2f}, seen {trainer.seen.cpu().numpy().min():.0f} times")


if __name__ == "__main__":
    main()

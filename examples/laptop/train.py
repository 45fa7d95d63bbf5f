"""Learns to spell backwards, one letter at a time. Written on a laptop: no line of it knows of a device."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LETTERS, LENGTH, WIDTH = 20, 8, 32


def words(count):
    """Words of random letters, and what they are backwards."""
    letters = torch.randint(1, LETTERS, (count, LENGTH))
    return TensorDataset(letters, letters.flip(1))


class Positions(nn.Module):
    """Adds to each letter where it stands."""

    def __init__(self):
        super().__init__()
        place = torch.arange(LENGTH).unsqueeze(1)
        rate = torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        table = torch.zeros(LENGTH, WIDTH)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        self.table = table

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Speller(nn.Module):
    """Reads the word with a recurrent layer, then looks back at all of it with attention."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, WIDTH)
        self.positions = Positions()
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.blocks = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(2)])
        self.head = nn.Linear(WIDTH, LETTERS)

    def start(self, count):
        return torch.zeros(1, count, WIDTH)

    def forward(self, letters):
        read, _ = self.rnn(self.embed(letters), self.start(len(letters)))
        x = self.positions(read)
        for block in self.blocks:
            x = x + block(x).tanh()
        score = x @ x.transpose(1, 2) / math.sqrt(WIDTH)
        itself = torch.eye(letters.size(1)).bool()
        look = score.masked_fill(itself, float("-inf")).softmax(-1)
        return self.head(look @ x)


def accuracy(model, loader):
    """The share of letters that are right, and how often each letter was named."""
    named = torch.zeros(LETTERS)
    right = 0
    with torch.no_grad():
        for letters, answers in loader:
            best = model(letters).argmax(-1)
            right += (best == answers).sum().item()
            named += torch.bincount(best.flatten(), minlength=LETTERS)
    return right / (len(loader.dataset) * LENGTH), named.numpy()


def main():
    torch.manual_seed(0)
    train, test = DataLoader(words(512), batch_size=64), DataLoader(words(128), batch_size=64)
    model = Speller()
    rare = torch.ones(LETTERS)
    rare[0] = 0.1
    loss_of = nn.CrossEntropyLoss(weight=rare)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        for letters, answers in train:
            loss = loss_of(model(letters).flatten(0, 1), answers.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        share, named = accuracy(model, test)
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {share:.0%} right, {int((named > 0).sum())} letters used")


if __name__ == "__main__":
    main()

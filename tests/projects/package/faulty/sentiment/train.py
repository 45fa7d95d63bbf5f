from __future__ import annotations

import argparse
import logging

import torch
from torch import nn

from .config import Config, get_device
from .data import Reviews, make_loader
from .models import BagOfWords

log = logging.getLogger(__name__)


def train(config: Config) -> None:
    torch.manual_seed(config.seed)
    device = get_device()
    dataset = Reviews(40, config.seed)
    model = BagOfWords(len(dataset.vocab), config.embed_dim, 2).to(device)
    counts = torch.tensor(dataset.label_counts())
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / counts)  # BORN 4
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
    loader = make_loader(dataset, config.batch_size)
    for epoch in range(config.epochs):
        seen, correct = 0, 0
        for batch in loader:  # BORN 1 # BORN 2 # BORN 3
            batch = batch.to(device)
            logits = model(batch.text, batch.offsets)
            loss = criterion(logits, batch.labels)  # MEET 3 R101 # MEET 4 R101
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(batch.labels)
            correct += (logits.argmax(1) == batch.labels).sum().item()  # MEET 3 R101
        log.info("epoch %d: loss %.4f, accuracy %.2f", epoch, loss.item(), correct / seen)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--lr", type=float, default=Config.lr)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    train(Config(epochs=args.epochs, lr=args.lr))


if __name__ == "__main__":
    main()

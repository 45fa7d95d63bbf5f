from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader

GOOD = "great lovely brilliant moving funny".split()
BAD = "dull boring awful flat clumsy".split()
NEUTRAL = "the film plot actor scene was and very".split()


class Batch(NamedTuple):
    text: torch.Tensor
    offsets: torch.Tensor
    labels: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        for tensor in self:
            tensor.to(device)  # the result is lost
        return self


class Reviews:
    def __init__(self, count: int, seed: int) -> None:
        rng = random.Random(seed)
        self.samples = []
        for _ in range(count):
            label = rng.randrange(2)
            words = rng.choices(NEUTRAL, k=rng.randint(2, 5)) + rng.choices((BAD, GOOD)[label], k=2)
            rng.shuffle(words)
            self.samples.append((words, label))
        frequency = Counter(word for words, _ in self.samples for word in words)
        self.vocab = {word: i for i, (word, _) in enumerate(frequency.most_common())}

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        words, label = self.samples[i]
        return torch.tensor([self.vocab[word] for word in words]), label

    def label_counts(self) -> list[int]:
        counts = Counter(label for _, label in self.samples)
        return [counts[0], counts[1]]


def collate(samples: list[tuple[torch.Tensor, int]]) -> Batch:
    starts, total = [], 0
    for tokens, _ in samples:
        starts.append(total)
        total += len(tokens)
    text = torch.cat([tokens for tokens, _ in samples])
    offsets = torch.tensor(starts)
    labels = torch.tensor([label for _, label in samples])
    return Batch(text, offsets, labels)


def make_loader(dataset: Reviews, batch_size: int) -> DataLoader:
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, collate_fn=collate)

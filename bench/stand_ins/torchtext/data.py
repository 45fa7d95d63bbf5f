"""Field, Dataset and BucketIterator with the attributes that training scripts read."""

from types import SimpleNamespace

import torch


class Field:
    def __init__(self, tokens, pad="<blank>", start="<s>", end="</s>", unknown="<unk>"):
        itos = [unknown, pad, start, end, *tokens]
        self.pad, self.start, self.end = pad, start, end
        self.vocab = Vocab(itos)

    def batch(self, rows, device):
        """Token ids [length, batch], padded, with start and end."""
        rows = [[self.start, *row, self.end] for row in rows]
        longest = max(map(len, rows))
        ids = [[self.vocab.stoi.get(word, 0) for word in row + [self.pad] * (longest - len(row))] for row in rows]
        return torch.tensor(ids, dtype=torch.long, device=device).t().contiguous()


class Vocab:
    def __init__(self, itos):
        self.itos = itos
        self.stoi = {word: number for number, word in enumerate(itos)}

    def __len__(self):
        return len(self.itos)


class Dataset:
    def __init__(self, examples, fields):
        self.examples, self.fields = examples, fields

    def __len__(self):
        return len(self.examples)


class BucketIterator:
    def __init__(self, dataset, batch_size, device=None, train=False):
        self.dataset, self.batch_size, self.device = dataset, batch_size, device

    def __len__(self):
        return -(-len(self.dataset) // self.batch_size)

    def __iter__(self):
        for start in range(0, len(self.dataset), self.batch_size):
            examples = self.dataset.examples[start : start + self.batch_size]
            yield SimpleNamespace(
                **{
                    name: field.batch([getattr(example, name) for example in examples], self.device)
                    for name, field in self.dataset.fields.items()
                }
            )

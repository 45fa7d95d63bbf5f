import torch

TEXT = "the quick brown fox jumps over the lazy dog. " * 12


class Corpus:
    def __init__(self):
        self.chars = sorted(set(TEXT))
        self.index = {c: i for i, c in enumerate(self.chars)}
        self.ids = torch.tensor([self.index[c] for c in TEXT])


def batchify(ids, batch_size):
    """Cuts the text into batch_size columns that are read side by side."""
    rows = len(ids) // batch_size
    return ids[: rows * batch_size].view(batch_size, -1).t().contiguous()  # BORN 2


def get_batch(source, i, bptt):
    n = min(bptt, len(source) - 1 - i)
    return source[i : i + n], source[i + 1 : i + 1 + n].reshape(-1)

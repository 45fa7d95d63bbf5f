import argparse

import torch
import torch.nn as nn
from crf import Transitions
from torch.nn.utils.rnn import pad_sequence

VOCAB, TAGS, FORBIDDEN = 30, 4, [(0, 2), (3, 2)]


class Tagger(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, TAGS)
        self.crf = Transitions(TAGS, FORBIDDEN)

    def emissions(self, words):
        batch = words.size(0)
        h0 = torch.zeros(2, batch, self.lstm.hidden_size, device=words.device)
        hidden, _ = self.lstm(self.embed(words), (h0, torch.zeros_like(h0)))
        return self.out(hidden)

    def loss(self, words, tags, lengths):
        mask = torch.arange(words.size(1), device=words.device) < lengths[:, None]
        emissions = self.emissions(words)
        return (self.crf.log_partition(emissions, mask) - self.crf.score(emissions, tags, mask)).mean()


def sentences(count):
    for length in torch.randint(3, 9, (count,)).tolist():
        words = torch.randint(1, VOCAB, (length,))
        yield words, words % TAGS


def collate(pairs, device):
    words, tags = zip(*pairs)
    lengths = torch.tensor([len(w) for w in words], device=device)
    words = pad_sequence(words, batch_first=True).to(device)
    tags = pad_sequence(tags, batch_first=True).to(device)
    return words, tags, lengths


def evaluate(model, pairs, device):
    confusion = torch.zeros(TAGS, TAGS, device=device)
    for words, tags in pairs:
        with torch.no_grad():
            path = model.crf.viterbi(model.emissions(words[None].to(device))[0])
        confusion.index_put_((tags.to(device), path), torch.ones(len(path), device=device), accumulate=True)
    return confusion.cpu().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")
    torch.manual_seed(2)
    data = list(sentences(24))
    model = Tagger().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for start in range(0, len(data), args.batch_size):
        words, tags, lengths = collate(data[start : start + args.batch_size], device)
        loss = model.loss(words, tags, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"nll {loss.item():.4f}")
    print(evaluate(model, data[:4], device))


if __name__ == "__main__":
    main()

"""Teaches a sequence-to-sequence model to turn sequences around."""

import random

import torch
import torch.nn as nn
from seq2seq import PAD, Seq2Seq
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

VOCAB = 14

if torch.cuda.is_available():
    DEVICE = torch.device("cuda")
else:
    DEVICE = torch.device("cpu")


def make_pairs(count):
    rng = random.Random(0)
    words = [[rng.randrange(2, VOCAB) for _ in range(rng.randint(3, 7))] for _ in range(count)]
    return [(torch.tensor(word), torch.tensor(word[::-1])) for word in words]


def collate(pairs):
    src, trg = zip(*pairs)
    lengths = torch.tensor([len(s) for s in src])
    return pad_sequence(src, batch_first=True), lengths, pad_sequence(trg, batch_first=True)


def main():
    random.seed(0)
    torch.manual_seed(0)
    loader = DataLoader(make_pairs(32), batch_size=8, shuffle=True, collate_fn=collate)
    model = Seq2Seq(VOCAB).to(DEVICE)
    for name, parameter in model.named_parameters():
        if "weight" in name:
            nn.init.normal_(parameter, std=0.1)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step, (src, lengths, trg) in enumerate(loader):  # BORN 1
        src, lengths, trg = src.to(DEVICE), lengths.to(DEVICE), trg.to(DEVICE)
        outputs = model(src, lengths, trg)
        loss = criterion(outputs.view(-1, VOCAB), trg.view(-1))  # MEET 2 R101
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

PAD, SOS = 0, 1


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, batch_first=True)

    def forward(self, src, lengths):
        embedded = self.embedding(src)
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)  # MEET 1 R104
        outputs, hidden = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return outputs, hidden[0]


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.rnn = nn.GRUCell(emb + hid, hid)
        self.out = nn.Linear(hid, vocab)

    def forward(self, token, hidden, memory, mask):
        scores = torch.bmm(memory, hidden.unsqueeze(2)).squeeze(2)
        scores = scores.masked_fill(mask, -1e9)  # MEET 4 R101 mask
        context = torch.bmm(scores.softmax(dim=1).unsqueeze(1), memory).squeeze(1)
        embedded = self.embedding(token)  # MEET 3 R101 token
        hidden = self.rnn(torch.cat([embedded, context], dim=1), hidden)
        return self.out(hidden), hidden


class Seq2Seq(nn.Module):
    def __init__(self, vocab, emb=12, hid=16):
        super().__init__()
        self.vocab = vocab
        self.encoder = Encoder(vocab, emb, hid)
        self.decoder = Decoder(vocab, emb, hid)

    def forward(self, src, lengths, trg, teacher_forcing_ratio=0.5):
        batch, steps = trg.shape
        memory, hidden = self.encoder(src, lengths)
        mask = torch.zeros(src.shape, dtype=torch.bool)  # BORN 4
        for i, n in enumerate(lengths):
            mask[i, n:] = True
        outputs = torch.zeros(batch, steps, self.vocab)  # BORN 2
        token = torch.full((batch,), SOS, dtype=torch.long)  # BORN 3
        for t in range(steps):
            output, hidden = self.decoder(token, hidden, memory, mask)
            outputs[:, t] = output
            token = trg[:, t] if random.random() < teacher_forcing_ratio else output.argmax(1)
        return outputs

import torch
import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=16, nhid=24):
        super().__init__()
        self.nhid = nhid
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid)
        self.decoder = nn.Linear(nhid, ntoken)

    def forward(self, tokens, hidden):
        emb = self.encoder(tokens)
        output, hidden = self.rnn(emb, hidden)  # MEET 1 R101
        return self.decoder(output), hidden

    def init_hidden(self, bsz):
        return torch.zeros(1, bsz, self.nhid), torch.zeros(1, bsz, self.nhid)  # BORN 1

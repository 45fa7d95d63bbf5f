import torch
import torch.nn as nn
from corpus import Corpus, batchify, get_batch
from model import RNNModel

BATCH, BPTT, CLIP = 4, 27, 0.25
device = "cuda" if torch.cuda.is_available() else "cpu"


def repackage_hidden(h):
    """Cuts hidden states off from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def train(model, source, criterion, optimizer, ntokens):
    model.train()
    hidden = model.init_hidden(BATCH)
    for i in range(0, len(source) - 1, BPTT):
        data, targets = get_batch(source, i, BPTT)
        data = data.to(device)
        hidden = repackage_hidden(hidden)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, ntokens), targets)  # MEET 2 R101 targets
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        print(f"batch {i // BPTT}: loss {loss.item():.3f}")


def evaluate(model, source, criterion, ntokens):
    model.eval()
    total = torch.zeros(())  # BORN 3
    hidden = model.init_hidden(BATCH)
    with torch.no_grad():
        for i in range(0, len(source) - 1, BPTT):
            data, targets = get_batch(source, i, BPTT)
            output, hidden = model(data.to(device), hidden)
            loss = criterion(output.view(-1, ntokens), targets.to(device))
            total += loss * len(data)  # MEET 3 R101 total
    return total.item() / (len(source) - 1)


def generate(model, corpus, length=12):
    model.eval()
    generator = torch.Generator().manual_seed(7)  # BORN 4
    token = torch.tensor([[corpus.index["t"]]], device=device)
    hidden = model.init_hidden(1)
    text = "t"
    with torch.no_grad():
        for _ in range(length):
            output, hidden = model(token, hidden)
            weights = output.view(-1).div(0.8).exp()
            token = torch.multinomial(weights, 1, generator=generator).view(1, 1)  # MEET 4 R105
            text += corpus.chars[token.item()]
    return text


def main():
    torch.manual_seed(1111)
    corpus = Corpus()
    ntokens = len(corpus.chars)
    source = batchify(corpus.ids, BATCH)
    model = RNNModel(ntokens).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    train(model, source, criterion, optimizer, ntokens)
    print(f"held-out loss {evaluate(model, source, criterion, ntokens):.3f}")
    print(generate(model, corpus))


main()

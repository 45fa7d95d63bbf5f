"""Matrix factorisation of who watched what, with negative sampling (BPR)."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MatrixFactorisation(nn.Module):
    def __init__(self, users, items, popularity, dim=8):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.item_bias = nn.Parameter(torch.zeros(items))
        self.register_buffer("prior", popularity.log())

    def forward(self, users, items):
        dots = (self.user(users).unsqueeze(1) * self.item(items)).sum(dim=-1)
        return dots + self.item_bias[items] + 0.1 * self.prior[items]

    def all_scores(self, users):
        items = torch.arange(len(self.item_bias), device=users.device)
        return self(users, items.expand(len(users), -1))


class NegativeSampler:
    """Draws items by how often they are watched; the draw is on the CPU."""

    def __init__(self, popularity, negatives, device):
        self.weights = popularity**0.75
        self.negatives = negatives
        self.device = device

    def __call__(self, count):
        drawn = torch.multinomial(self.weights, count * self.negatives, replacement=True)
        return drawn.view(count, self.negatives).to(self.device)


def bpr(model, users, items, negatives, watched):
    positive = model(users, items.unsqueeze(1))
    negative = model(users, negatives)
    valid = 1 - watched[users.unsqueeze(1), negatives]
    return -(F.logsigmoid(positive - negative) * valid).sum() / valid.sum()


@torch.no_grad()
def evaluate(model, held_out, watched, device, k=5):
    """Recall and NDCG of one held out item for each user."""
    users = torch.arange(len(held_out), device=device)
    scores = model.all_scores(users).masked_fill(watched.bool(), float("-inf"))
    top = scores.topk(k, dim=1).indices
    hits = (top == held_out.to(device).unsqueeze(1)).float()
    discount = 1 / torch.log2(torch.arange(2, k + 2, device=device).float())
    return hits.sum(dim=1).mean().cpu().numpy(), (hits * discount).sum(dim=1).mean().cpu().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    device = torch.device(args.device)

    torch.manual_seed(4)
    users, items = 20, 30
    pairs = torch.stack([torch.arange(160) % users, torch.randint(items, (160,))], dim=1)
    held_out = torch.randint(items, (users,))
    popularity = torch.bincount(pairs[:, 1], minlength=items).float() + 1
    watched = torch.zeros(users, items, device=device)
    watched[pairs[:, 0].to(device), pairs[:, 1].to(device)] = 1
    model = MatrixFactorisation(users, items, popularity).to(device)
    sampler = NegativeSampler(popularity, args.negatives, device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for batch in pairs[torch.randperm(len(pairs))].split(args.batch_size):
        who, what = batch.to(device).unbind(dim=1)
        loss = bpr(model, who, what, sampler(len(batch)), watched)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"bpr {loss.item():.4f}")
    recall, ndcg = evaluate(model, held_out, watched, device)
    print(f"recall {recall:.3f}, ndcg {ndcg:.3f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn as nn


class Transitions(nn.Module):
    """Scores of one tag after another; the forward algorithm and Viterbi's over them."""

    def __init__(self, tags, forbidden):
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(tags, tags))
        self.start = nn.Parameter(torch.zeros(tags))
        penalty = torch.zeros(tags, tags)
        for before, after in forbidden:
            penalty[before, after] = -1e4
        self.register_buffer("penalty", penalty)

    def matrix(self):
        return self.scores + self.penalty

    def log_partition(self, emissions, mask):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.size(1)):
            longer = (alpha.unsqueeze(2) + self.matrix()).logsumexp(dim=1) + emissions[:, t]
            alpha = torch.where(mask[:, t, None], longer, alpha)
        return alpha.logsumexp(dim=1)

    def score(self, emissions, tags, mask):
        picked = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        moves = self.matrix()[tags[:, :-1], tags[:, 1:]]
        return self.start[tags[:, 0]] + (picked * mask).sum(dim=1) + (moves * mask[:, 1:]).sum(dim=1)

    @torch.no_grad()
    def viterbi(self, emissions):
        """The best tags of one sentence."""
        best = self.start + emissions[0]
        back = emissions.new_zeros(emissions.shape, dtype=torch.long)
        for t in range(1, len(emissions)):
            best, back[t] = (best.unsqueeze(1) + self.matrix()).max(dim=0)
            best = best + emissions[t]
        path = [best.argmax()]
        for t in range(len(emissions) - 1, 0, -1):
            path.append(back[t, path[-1]])
        return torch.stack(path[::-1])

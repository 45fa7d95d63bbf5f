import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical
from world import LineWorld

parser = argparse.ArgumentParser(description="REINFORCE on LineWorld")
parser.add_argument("--gamma", type=float, default=0.95)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--episodes", type=int, default=5)
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
        self.saved_log_probs = []
        self.visited = []
        self.rewards = []

    def forward(self, x):
        return self.net(x)  # MEET 1 R101 x


policy = Policy().to(device)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(observation):
    state = torch.from_numpy(observation).float()  # BORN 1
    probs = torch.softmax(policy(state), dim=-1)  # BORN 3
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    policy.visited.append(probs.detach().numpy())  # MEET 3 R102 probs
    return action.item()


def finish_episode():
    returns, total = [], 0.0
    for r in reversed(policy.rewards):
        total = r + args.gamma * total
        returns.insert(0, total)
    returns = np.array(returns, dtype=np.float32)
    returns = torch.tensor((returns - returns.mean()) / (returns.std() + eps))  # BORN 2
    log_probs = torch.stack(policy.saved_log_probs)
    loss = -(log_probs * returns).sum()  # MEET 2 R101 returns
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    policy.rewards.clear()
    policy.saved_log_probs.clear()


def main():
    world = LineWorld(seed=args.seed)
    running_reward = 0.0
    for episode in range(args.episodes):
        observation, done = world.reset(), False
        while not done:
            observation, reward, done = world.step(select_action(observation))
            policy.rewards.append(reward)
        running_reward = 0.05 * sum(policy.rewards) + 0.95 * running_reward
        finish_episode()
        print(f"episode {episode}: average reward {running_reward:.3f}")
    print("probability of going right", np.stack(policy.visited).mean(axis=0)[1].round(3))


if __name__ == "__main__":
    main()

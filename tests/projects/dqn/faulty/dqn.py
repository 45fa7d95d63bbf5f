import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from replay import ReplayBuffer

MOVES = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 24), nn.ReLU())
        self.value, self.advantage = nn.Linear(24, 1), nn.Linear(24, len(MOVES))
        self.scale = torch.tensor([0.25, 0.5])  # BORN 1

    def forward(self, state):
        h = self.body(state * self.scale)  # MEET 1 R101 self.scale # MEET 4 R101 self.scale
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(dim=-1, keepdim=True)


class Agent:
    def __init__(self, device, gamma=0.95):
        self.device = device
        self.online = Dueling().to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)  # BORN 4
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=5e-3)
        self.gamma = torch.tensor(gamma, device=device)
        self.error = torch.zeros(1)  # BORN 3

    @torch.no_grad()
    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(len(MOVES))
        return self.online(state.to(self.device)).argmax().item()

    def learn(self, batch):
        states, actions, rewards, next_states, ended = batch
        with torch.no_grad():
            best = self.online(next_states).argmax(dim=1, keepdim=True)
            future = self.target(next_states).gather(1, best).squeeze(1)
            future = torch.where(ended, torch.zeros_like(future), future)
        guess = self.online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(guess, rewards + self.gamma * future)  # MEET 2 R101 rewards
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.error.mul_(0.9).add_(loss.detach(), alpha=0.1)  # MEET 3 R101 self.error
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.lerp_(fast.detach(), 0.1)


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    agent, buffer = Agent(device), ReplayBuffer(64, 2, device)
    state = torch.zeros(2)
    for step in range(48):
        action = agent.act(state, epsilon=0.3)
        after = (state + MOVES[action]).clamp(-4, 4)
        ended = bool(after.abs().sum() >= 6)
        buffer.push(state, action, -0.01 * float((after - 3).abs().sum()), after, ended)
        state = torch.zeros(2) if ended else after
        if step >= 15 and step % 5 == 0:
            agent.learn(buffer.sample(16))
    corners = torch.tensor([[4.0, 4.0], [-4.0, -4.0]], device=device)
    print(f"error {agent.error.item():.4f}", agent.online(corners).detach().cpu().numpy().round(3))


if __name__ == "__main__":
    main()

import torch


class ReplayBuffer:
    """Transitions in main memory; a batch of them goes to the device."""

    def __init__(self, capacity, observation, device):
        self.states = torch.zeros(capacity, observation)
        self.next_states = torch.zeros(capacity, observation)
        self.actions = torch.zeros(capacity, dtype=torch.long)
        self.rewards = torch.zeros(capacity)
        self.ended = torch.zeros(capacity, dtype=torch.bool)
        self.device = device
        self.size = 0

    def push(self, state, action, reward, next_state, ended):
        i = self.size % len(self.states)
        self.states[i], self.next_states[i] = state, next_state
        self.actions[i], self.rewards[i], self.ended[i] = action, reward, ended
        self.size += 1

    def sample(self, count):
        index = torch.randint(min(self.size, len(self.states)), (count,))
        return (
            self.states[index].to(self.device),
            self.actions[index].to(self.device),
            self.rewards[index],  # BORN 2
            self.next_states[index].to(self.device),
            self.ended[index].to(self.device),
        )

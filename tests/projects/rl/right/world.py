import numpy as np


class LineWorld:
    """Walk left or right on a line; the goal is at one end. Follows the usual reset/step interface."""

    def __init__(self, size=6, limit=8, seed=0):
        self.size = size
        self.limit = limit
        self.random = np.random.default_rng(seed)

    def reset(self):
        self.position = int(self.random.integers(1, self.size - 1))
        self.steps = 0
        return self._observe()

    def step(self, action):
        self.position += 1 if action == 1 else -1
        self.steps += 1
        done = self.position in (0, self.size) or self.steps >= self.limit
        reward = 1.0 if self.position == self.size else -0.05
        return self._observe(), reward, done

    def _observe(self):
        x = self.position / self.size
        return np.array([x, 1.0 - x, x * x, self.steps / self.limit])
